// Package migrate has the commands that import users and jobs of other systems.
// In: kubeconfigs of both clusters. Out: objects in this cluster, and a report of everything that wasn't imported.
package migrate

import (
	"github.com/spf13/cobra"

	"github.com/openpai/paictl/pkg/cmdutil"
)

// NewCmdMigrate returns "paictl migrate".
func NewCmdMigrate(f *cmdutil.Factory) *cobra.Command {
	cmd := &cobra.Command{
		Use:   "migrate COMMAND",
		Short: "Import people and jobs from another system",
		Long:  `Takes over what a cluster of another system holds. Files of OpenPAI's configuration are read by "paictl config migrate".`,
		Example: `  paictl migrate openpai --from-kubeconfig old.conf --dry-run
  paictl migrate openpai --from-kubeconfig old.conf`,
	}
	cmd.AddCommand(NewCmdOpenPAI(f, nil))
	return cmd
}
