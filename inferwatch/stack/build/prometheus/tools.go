//go:build tools

// Package tools pins what gobuild.py builds: the commands of one prometheus release and all they need.
package tools

import (
	_ "github.com/prometheus/prometheus/cmd/prometheus"
	_ "github.com/prometheus/prometheus/cmd/promtool"
)
