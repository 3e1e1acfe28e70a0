package netcheck

import "embed"

// Version is the version of the program, and the tag of its image. Increase it with each change.
const Version = "v1"

//go:embed netcheck.go command.go
var source embed.FS

// mainFile is the main.go of a module that contains only this program.
const mainFile = `package main

import (
	"context"
	"fmt"
	"os"
	"os/signal"
	"syscall"

	"paictl.openpai.org/netcheck/netcheck"
)

func main() {
	ctx, stop := signal.NotifyContext(context.Background(), os.Interrupt, syscall.SIGTERM)
	err := netcheck.Run(ctx, os.Args[1:])
	stop()
	if err != nil {
		fmt.Fprintln(os.Stderr, "netcheck:", err)
		os.Exit(1)
	}
}
`

// Module returns the files of a Go module that contains only this program, by path. With this module, an installed paictl can build the image
// without a checkout. The module has no dependencies.
func Module() map[string]string {
	out := map[string]string{
		"go.mod":  "module paictl.openpai.org/netcheck\n\ngo 1.26.0\n",
		"main.go": mainFile,
	}
	for _, name := range []string{"netcheck.go", "command.go"} {
		b, err := source.ReadFile(name)
		if err != nil {
			panic(err) // the embedding above names the same files
		}
		out["netcheck/"+name] = string(b)
	}
	return out
}
