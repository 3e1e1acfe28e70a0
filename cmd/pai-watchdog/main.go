// Command pai-watchdog reports to Prometheus when certificates expire, whether the API server responds, and the state of backups.
package main

import (
	"context"
	"fmt"
	"os"
	"os/signal"
	"syscall"

	"github.com/openpai/paictl/pkg/diagnose/watchdog"
)

func main() {
	ctx, stop := signal.NotifyContext(context.Background(), os.Interrupt, syscall.SIGTERM)
	err := watchdog.Run(ctx, os.Args[1:], os.Stdout)
	stop()
	if err != nil {
		fmt.Fprintln(os.Stderr, "pai-watchdog:", err)
		os.Exit(1)
	}
}
