// Command controlplane builds etcd and the API server of the pinned Kubernetes into a folder. The folder is a bundle that contains only these,
// because the tests of the gate need no other part of a bundle. If the folder is up to date, it does nothing.
package main

import (
	"context"
	"fmt"
	"os"
	"os/signal"
	"syscall"

	"github.com/openpai/paictl/pkg/cluster/bundle/build"
)

func main() { os.Exit(run()) }

func run() int {
	if len(os.Args) != 2 {
		fmt.Fprintln(os.Stderr, "Usage: go run ./hack/controlplane FOLDER")
		return 2
	}
	ctx, stop := signal.NotifyContext(context.Background(), os.Interrupt, syscall.SIGTERM)
	defer stop()
	recipe := build.ControlPlane()
	if _, err := build.Run(ctx, build.Options{Dir: os.Args[1], Recipe: &recipe, Progress: os.Stdout}); err != nil {
		fmt.Fprintln(os.Stderr, "controlplane:", err)
		return 1
	}
	return 0
}
