//go:build tools

// Package tools pins what gobuild.py builds: the command of one Jaeger release and all it needs.
package tools

import (
	_ "github.com/jaegertracing/jaeger/cmd/jaeger"
)
