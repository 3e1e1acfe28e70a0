package sandbox

import (
	"errors"
	"fmt"
	"io"

	"github.com/spf13/cobra"

	"github.com/openpai/paictl/pkg/cluster/sandbox"
	"github.com/openpai/paictl/pkg/cmdutil"
	"github.com/openpai/paictl/pkg/ui/iostreams"
)

// ListOptions are the options of "paictl sandbox list".
type ListOptions struct {
	IO     *iostreams.IOStreams
	Output cmdutil.Output
	Dir    string
}

// listing is the output of "list -o json".
type listing struct {
	Name       string         `json:"name"`
	Dir        string         `json:"dir"`
	QuickStart string         `json:"quickStart,omitempty"`
	KeyFile    string         `json:"keyFile,omitempty"`
	KnownHosts string         `json:"knownHosts,omitempty"`
	Kubeconfig string         `json:"kubeconfig,omitempty"`
	Hosts      []sandbox.Host `json:"hosts"`
}

// NewCmdList returns "paictl sandbox list".
func NewCmdList(f *cmdutil.Factory) *cobra.Command {
	opts := &ListOptions{IO: f.IO}
	cmd := &cobra.Command{
		Use:     "list",
		Aliases: []string{"ls"},
		Short:   "Show the sandbox's hosts",
		Args:    cobra.NoArgs,
		RunE: func(_ *cobra.Command, _ []string) error {
			return listRun(opts)
		},
	}
	addDirFlag(cmd, f, &opts.Dir)
	cmdutil.AddOutputFlag(cmd, &opts.Output)
	return cmd
}

func listRun(opts *ListOptions) error {
	s, err := sandbox.Load(opts.Dir, nil)
	if errors.Is(err, sandbox.ErrNone) {
		fmt.Fprintf(opts.IO.Err, "no sandbox in %s\n", opts.Dir)
		return opts.Output.Write(opts.IO.Out, listing{Dir: opts.Dir, Hosts: []sandbox.Host{}}, cmdutil.Table{})
	}
	if err != nil {
		return err
	}
	return printList(s, opts.IO.Out, &opts.Output)
}

func printList(s *sandbox.Sandbox, w io.Writer, output *cmdutil.Output) error {
	hosts, err := s.Hosts()
	if err != nil {
		return err
	}
	l := listing{Name: s.Name(), Dir: s.Dir(), Hosts: hosts}
	if s.APIOnly() {
		l.Kubeconfig = s.Kubeconfig()
	} else {
		l.QuickStart, l.KeyFile, l.KnownHosts = s.QuickStart(), s.KeyFile(), s.KnownHosts()
	}
	t := cmdutil.Table{Header: []string{"NAME", "ADDRESS", "KIND", "POWER"}}
	for _, h := range hosts {
		power := "off"
		if h.Running {
			power = "on"
		}
		t.Rows = append(t.Rows, []string{h.Name, h.Address.String(), string(h.Kind), power})
	}
	return output.Write(w, l, t)
}
