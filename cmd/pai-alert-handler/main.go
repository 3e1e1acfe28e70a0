// Command pai-alert-handler executes operations, either for alerts, as policies define, or on request of administrators.
package main

import (
	"context"
	"fmt"
	"os"
	"os/signal"
	"syscall"

	"github.com/openpai/paictl/pkg/alerthandler"
)

func main() {
	ctx, stop := signal.NotifyContext(context.Background(), os.Interrupt, syscall.SIGTERM)
	err := alerthandler.Run(ctx, os.Args[1:], os.Stdout)
	stop()
	if err != nil {
		fmt.Fprintln(os.Stderr, "pai-alert-handler:", err)
		os.Exit(1)
	}
}
