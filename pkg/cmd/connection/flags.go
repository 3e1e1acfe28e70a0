package connection

import (
	"github.com/spf13/cobra"

	"github.com/openpai/paictl/pkg/cmdutil"
	"github.com/openpai/paictl/pkg/kube"
)

// Flags choose the cluster, and how it is reached.
type Flags struct {
	Kube   kube.Options
	Server string
}

// AddFlags adds them to a command.
func (fl *Flags) AddFlags(f *cmdutil.Factory, cmd *cobra.Command) {
	cmdutil.AddKubeFlags(cmd, &fl.Kube)
	AddFlag(f, cmd, &fl.Server)
}

// Open returns the server that the flags choose.
func (fl *Flags) Open(f *cmdutil.Factory) (*Connection, error) {
	return Open(f, fl.Kube, fl.Server, "")
}
