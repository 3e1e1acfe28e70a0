// Command pai-logs keeps the output of the jobs on a machine longer than the kubelet does.
package main

import (
	"context"
	"fmt"
	"os"
	"os/signal"
	"syscall"

	"github.com/openpai/paictl/pkg/node/logstore"
)

func main() {
	ctx, stop := signal.NotifyContext(context.Background(), os.Interrupt, syscall.SIGTERM)
	err := logstore.Run(ctx, os.Args[1:], os.Stdout)
	stop()
	if err != nil {
		fmt.Fprintln(os.Stderr, "pai-logs:", err)
		os.Exit(1)
	}
}
