package connection

import (
	"context"

	"github.com/spf13/cobra"

	"github.com/openpai/paictl/pkg/client"
	"github.com/openpai/paictl/pkg/cmdutil"
	"github.com/openpai/paictl/pkg/kube"
)

// Flags are the flags that choose the cluster, and how to connect to it.
type Flags struct {
	Kube   kube.Options
	Server string
}

// AddFlags adds the flags to a command.
func (fl *Flags) AddFlags(f *cmdutil.Factory, cmd *cobra.Command) {
	cmdutil.AddKubeFlags(cmd, &fl.Kube)
	AddFlag(f, cmd, &fl.Server)
}

// Open connects to the server that the flags choose.
func (fl *Flags) Open(f *cmdutil.Factory) (*Connection, error) {
	return Open(f, fl.Kube, fl.Server, "")
}

// Complete completes up to most arguments with words from a response of the server. See cmdutil.Factory.Complete.
func Complete[T any](f *cmdutil.Factory, fl *Flags, most int, read func(*client.Server, context.Context) (*T, error), words func(*T) []string) cobra.CompletionFunc {
	return f.Complete(most, func(ctx context.Context, _ []string) ([]string, error) {
		w, err := fl.Open(f)
		if err != nil {
			return nil, err
		}
		all, err := read(w.Server, ctx)
		if err != nil {
			return nil, err
		}
		return words(all), nil
	})
}
