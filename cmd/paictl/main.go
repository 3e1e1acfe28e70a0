// Command paictl turns a list of IP addresses into a shared GPU cluster.
package main

import (
	"context"
	"os"
	"os/signal"
	"syscall"

	"github.com/openpai/paictl/pkg/cmd"
	"github.com/openpai/paictl/pkg/cmdutil"
	_ "github.com/openpai/paictl/pkg/cmdutil/garbage" // delays the first collection
	"github.com/openpai/paictl/pkg/ui/iostreams/noquery"
	"github.com/openpai/paictl/pkg/version"
)

func main() {
	noquery.Over()
	ctx, stop := signal.NotifyContext(context.Background(), os.Interrupt, syscall.SIGTERM)
	// After the first signal, which requests the end of the program, a second signal kills the program.
	context.AfterFunc(ctx, stop)
	os.Exit(cmd.Main(ctx, cmdutil.New(version.Version), os.Args[1:]))
}
