// Command pai-backup creates one backup of the cluster in which it runs.
package main

import (
	"context"
	"fmt"
	"os"
	"os/signal"
	"syscall"

	// The image contains no CA certificates, but S3 servers use certificates of public CAs.
	_ "golang.org/x/crypto/x509roots/fallback"

	"github.com/openpai/paictl/pkg/cluster/backups"
	"github.com/openpai/paictl/pkg/hint"
)

func main() {
	ctx, stop := signal.NotifyContext(context.Background(), os.Interrupt, syscall.SIGTERM)
	err := backups.Run(ctx, os.Args[1:], os.Stdout)
	stop()
	if err != nil {
		fmt.Fprintln(os.Stderr, "pai-backup:", err)
		if remedy := hint.Of(err); remedy != "" {
			fmt.Fprintln(os.Stderr, "  ->", remedy)
		}
		os.Exit(1)
	}
}
