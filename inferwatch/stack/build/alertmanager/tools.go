//go:build tools

// Package tools pins what gobuild.py builds: the commands of one alertmanager release and all they need.
package tools

import (
	_ "github.com/prometheus/alertmanager/cmd/alertmanager"
	_ "github.com/prometheus/alertmanager/cmd/amtool"
)
