// Command pai-api-proxy provides an address of the Kubernetes API on a machine of the cluster. The address stays valid when masters fail.
package main

import (
	"context"
	"fmt"
	"os"
	"os/signal"
	"syscall"

	"github.com/openpai/paictl/pkg/cluster/apiproxy"
)

func main() {
	ctx, stop := signal.NotifyContext(context.Background(), os.Interrupt, syscall.SIGTERM)
	err := apiproxy.Run(ctx, os.Args[1:], os.Stderr)
	stop()
	if err != nil {
		fmt.Fprintln(os.Stderr, "pai-api-proxy:", err)
		os.Exit(1)
	}
}
