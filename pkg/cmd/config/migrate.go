package config

import (
	"encoding/json"
	"fmt"
	"strconv"

	"github.com/spf13/cobra"

	"github.com/openpai/paictl/pkg/cmdutil"
	"github.com/openpai/paictl/pkg/config"
	"github.com/openpai/paictl/pkg/hint"
	"github.com/openpai/paictl/pkg/services/catalogue"
	"github.com/openpai/paictl/pkg/ui/iostreams"
)

// MigrateOptions are the options of "paictl config migrate".
type MigrateOptions struct {
	IO     *iostreams.IOStreams
	OldDir string
	NewDir string
	Force  bool
	DryRun bool
	JSON   bool
}

// migrated is the output of "migrate --json".
type migrated struct {
	From  config.Format          `json:"from"`
	Notes []config.MigrationNote `json:"notes"`
}

// NewCmdMigrate returns "paictl config migrate".
func NewCmdMigrate(f *cmdutil.Factory) *cobra.Command {
	opts := &MigrateOptions{IO: f.IO}
	cmd := &cobra.Command{
		Use:   "migrate -p OLD -o NEW",
		Short: "Turn a configuration of the original OpenPAI into paictl's",
		Long: `Reads the layout.yaml of OpenPAI 0.10 to 0.17, or of 1.5 and later, with the files beside it
(kubernetes-configuration.yaml, services-configuration.yaml, config.yaml), and writes the four files
of paictl into another folder. The old folder is not changed.

It lists every field that was changed or dropped, with the reason.`,
		Example: `  paictl config migrate -p ./old -o ./cluster
  paictl config migrate -p ./old --dry-run`,
		Args: cobra.NoArgs,
		RunE: func(cmd *cobra.Command, _ []string) error {
			if opts.OldDir == "" || opts.NewDir == "" && !opts.DryRun {
				return cmdutil.Usagef("give the old folder with -p and the new one with -o (see %s --help)", cmd.CommandPath())
			}
			return migrateRun(opts)
		},
	}
	fl := cmd.Flags()
	fl.StringVarP(&opts.OldDir, "config-path", "p", "", "folder with the old configuration")
	fl.StringVarP(&opts.NewDir, "output", "o", "", "folder to write; created if it is missing")
	fl.BoolVarP(&opts.Force, "force", "f", false, "replace existing files")
	fl.BoolVar(&opts.DryRun, "dry-run", false, "show what would happen to the fields and write nothing")
	fl.BoolVar(&opts.JSON, "json", false, "print the list of changed and dropped fields as JSON")
	_ = cmd.MarkFlagDirname("config-path")
	_ = cmd.MarkFlagDirname("output")
	return cmd
}

func migrateRun(opts *MigrateOptions) error {
	dir := opts.NewDir
	if dir == "" {
		dir = "."
	}
	m, err := config.Migrate(opts.OldDir, dir, catalogue.Reference(), catalogue.Check)
	if err != nil {
		return err
	}
	if !opts.DryRun {
		if err := config.WriteFolder(dir, m.Files, m.Cluster.HoldsSecret, opts.Force); err != nil {
			return err
		}
	}
	fmt.Fprintf(opts.IO.Err, "the configuration had %s\n", m.From)
	if err := m.Warnings.Write(opts.IO.Err); err != nil {
		return err
	}
	if !opts.DryRun {
		fmt.Fprintf(opts.IO.Err, "wrote %s; next: paictl config validate -p %s\n", dir, hint.Quote(dir))
	}
	return printNotes(opts, m)
}

func printNotes(opts *MigrateOptions, m *config.Migration) error {
	if opts.JSON {
		enc := json.NewEncoder(opts.IO.Out)
		enc.SetIndent("", "  ")
		return enc.Encode(migrated{From: m.From, Notes: append([]config.MigrationNote{}, m.Notes...)})
	}
	if len(m.Notes) == 0 {
		return nil
	}
	t := cmdutil.Table{Header: []string{"FIELD", "VALUE", "WHAT", "WHY"}}
	for _, n := range m.Notes {
		field := n.File + ": " + n.Field
		if n.Line > 0 {
			field = n.File + ":" + strconv.Itoa(n.Line) + ": " + n.Field
		}
		t.Rows = append(t.Rows, []string{field, n.Value, n.Action, n.Reason})
	}
	return (&cmdutil.Output{}).Write(opts.IO.Out, nil, t)
}
