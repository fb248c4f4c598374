//go:build tools

// Package tools pins what inferwatch/compose/cli.py builds: the compose command line and all it needs.
package tools

import _ "github.com/docker/compose/v5/cmd"
