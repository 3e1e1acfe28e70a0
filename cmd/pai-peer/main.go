// Command pai-peer transfers files between machines during a run of paictl. paictl starts it, and stops it when the run ends.
package main

import (
	"context"
	"fmt"
	"os"
	"os/signal"
	"syscall"

	"github.com/openpai/paictl/pkg/cluster/peer"
)

func main() {
	ctx, stop := signal.NotifyContext(context.Background(), os.Interrupt, syscall.SIGTERM)
	err := peer.Run(ctx, os.Args[1:], os.NewFile(3, "what to do"), os.Stdin, os.Stdout)
	stop()
	if err != nil {
		fmt.Fprintln(os.Stderr, "pai-peer:", err)
		os.Exit(1)
	}
}
