package scheduler

import (
	"context"
	"fmt"
	"strconv"
	"strings"

	"github.com/spf13/cobra"

	"github.com/openpai/paictl/pkg/cmdutil"
	"github.com/openpai/paictl/pkg/config/strictyaml"
	"github.com/openpai/paictl/pkg/kube"
	"github.com/openpai/paictl/pkg/scheduler/cell"
	"github.com/openpai/paictl/pkg/scheduler/machines"
	"github.com/openpai/paictl/pkg/scheduler/sim"
	"github.com/openpai/paictl/pkg/ui/iostreams"
)

// CheckOptions are the options of "paictl scheduler check".
type CheckOptions struct {
	IO     *iostreams.IOStreams
	Output cmdutil.Output

	// Cluster means that the cells are also compared with the machines of a cluster.
	Cluster bool
	Kube    kube.Options

	source source
}

// checked is the output of "check -o json".
type checked struct {
	Valid    bool                `json:"valid"`
	Errors   int                 `json:"errors"`
	Warnings int                 `json:"warnings"`
	Findings strictyaml.Findings `json:"findings"`
	// Machines are the differences between machines and their cells. Silent are the machines that don't report their GPUs. Both fields are set
	// only if the cluster was queried.
	Machines []machines.Finding `json:"machines,omitempty"`
	Silent   []string           `json:"silent,omitempty"`
	// Division is nil if the configuration contains errors.
	*sim.Division
}

// NewCmdCheck returns "paictl scheduler check".
func NewCmdCheck(f *cmdutil.Factory) *cobra.Command {
	opts := &CheckOptions{IO: f.IO}
	cmd := &cobra.Command{
		Use:   "check",
		Short: "Find mistakes in a scheduler configuration, and show what each virtual cluster owns",
		Long: `Reads a scheduler configuration and reports all mistakes in it: unknown types, virtual
clusters that own more cells than exist, wrong pinned cells, addresses that occur twice. Every finding
names file, line and field, and says what to do. Without findings, it prints the hardware and its division:
the cells of each virtual cluster, and the cells that no virtual cluster owns.

Without --config the configuration is made from the machines of layout.yaml and the section scheduler
of services-configuration.yaml. With --cluster it compares the cells with the GPUs that the agents of the
machines have found: their number, their models, and the NUMA nodes of the GPUs of a cell. The exit code
is 1 if there are errors, or machines that differ.`,
		Example: `  paictl scheduler check --config hivedscheduler.yaml
  paictl scheduler check -p ./cluster --cluster
  paictl scheduler check -p ./cluster -o json | jq '.virtualClusters[] | {name, gpus}'`,
		Args: cobra.NoArgs,
		RunE: func(cmd *cobra.Command, _ []string) error {
			return checkRun(cmd.Context(), opts)
		},
	}
	opts.source.add(cmd, f)
	cmd.Flags().BoolVar(&opts.Cluster, "cluster", false, "also compare the cells with the machines of the cluster")
	cmdutil.AddKubeFlags(cmd, &opts.Kube)
	cmdutil.AddOutputFlag(cmd, &opts.Output, "table", "wide", "json", "yaml")
	return cmd
}

func checkRun(ctx context.Context, opts *CheckOptions) error {
	c, findings, err := opts.source.load()
	if err != nil {
		return err
	}
	v := checked{Valid: findings.Err() == nil, Errors: len(findings.Errors()), Warnings: len(findings.Warnings()), Findings: findings}
	if v.Findings == nil {
		v.Findings = strictyaml.Findings{}
	}
	if v.Valid {
		if v.Division, err = sim.Divide(c); err != nil {
			return err
		}
		if opts.Cluster {
			if err := v.ask(ctx, opts.Kube, c); err != nil {
				return err
			}
		}
	}
	if !opts.Output.IsTable() {
		err = opts.Output.Write(opts.IO.Out, v, cmdutil.Table{})
	} else {
		err = writeChecked(opts, &v)
	}
	if err == nil && (!v.Valid || len(v.Machines) > 0) {
		return cmdutil.ErrSilent
	}
	return err
}

// ask queries the cluster, and adds the differences between machines and cells to the result.
func (v *checked) ask(ctx context.Context, o kube.Options, c cell.Config) error {
	cluster, err := kube.Open(o)
	if err != nil {
		return err
	}
	t, err := machines.Read(ctx, cluster.Client)
	if err != nil {
		return err
	}
	v.Machines, v.Silent, err = machines.Compare(c, t)
	return err
}

// writeMachines prints the differences between machines and their cells, and the machines that don't report their GPUs.
func writeMachines(opts *CheckOptions, v *checked) {
	for _, m := range v.Machines {
		fmt.Fprintf(opts.IO.Out, "%s: %s\n  -> %s\n", m.Node, m.Message, m.Remedy)
	}
	if len(v.Silent) > 0 {
		fmt.Fprintf(opts.IO.Err, "the GPUs of %s are not known: no agent has reported them (paictl service start -n agent)\n", strings.Join(v.Silent, ", "))
	}
	if len(v.Machines) == 0 && len(v.Silent) == 0 {
		fmt.Fprintln(opts.IO.Err, "all machines match their cells")
	}
}

func writeChecked(opts *CheckOptions, v *checked) error {
	if err := v.Findings.Write(opts.IO.Out); err != nil {
		return err
	}
	fmt.Fprintf(opts.IO.Err, "%s: %s\n", opts.source.name(), v.Findings.Summary())
	if v.Division == nil {
		return nil
	}
	if opts.Cluster {
		writeMachines(opts, v)
	}
	if len(v.Findings) > 0 || len(v.Machines) > 0 {
		fmt.Fprintln(opts.IO.Out)
	}
	if err := opts.Output.Write(opts.IO.Out, v, hardware(v.Division)); err != nil {
		return err
	}
	fmt.Fprintln(opts.IO.Out)
	return opts.Output.Write(opts.IO.Out, v, owners(v.Division))
}

// hardware returns a table with one row per chain and level.
func hardware(d *sim.Division) cmdutil.Table {
	t := cmdutil.Table{Header: []string{"CHAIN", "LEVEL", "CELLS", "GPUS EACH", "GPUS"}}
	if d.CPUCells > 0 {
		t.Header = append(t.Header, "CPU CELLS EACH", "CPU CELLS")
	}
	for _, c := range d.Chains {
		name := c.Name
		for _, l := range c.Levels {
			level := l.CellType
			if l.IsNodeLevel {
				level += " (node)"
			}
			row := []string{name, level, strconv.Itoa(l.Count), strconv.Itoa(l.GPUs), strconv.Itoa(l.Count * l.GPUs)}
			if d.CPUCells > 0 {
				row = append(row, strconv.Itoa(l.CPUCells), strconv.Itoa(l.Count*l.CPUCells))
			}
			t.Rows = append(t.Rows, row)
			name = ""
		}
	}
	return t
}

// owners returns a table with one row per virtual cluster, and one row for cells without an owner.
func owners(d *sim.Division) cmdutil.Table {
	t := cmdutil.Table{Header: []string{"VIRTUAL CLUSTER", "GPUS", "SHARE"}}
	if d.CPUCells > 0 {
		t.Header = append(t.Header, "CPU CELLS", "SHARE")
	}
	t.Header = append(t.Header, "CELLS")
	row := func(name string, gpus, cpuCells int, cells []string) {
		if len(cells) == 0 {
			cells = []string{"-"}
		}
		r := []string{name, strconv.Itoa(gpus), percent(gpus, d.GPUs)}
		if d.CPUCells > 0 {
			r = append(r, strconv.Itoa(cpuCells), percent(cpuCells, d.CPUCells))
		}
		t.Rows = append(t.Rows, append(r, strings.Join(cells, ", ")))
	}
	for _, v := range d.VirtualClusters {
		cells := counted(v.Cells)
		for _, p := range v.Pinned {
			cells = append(cells, fmt.Sprintf("%s (pinned %s)", p.ID, p.CellType))
		}
		row(v.Name, v.GPUs, v.CPUCells, cells)
	}
	row("(unassigned)", d.Unassigned.GPUs, d.Unassigned.CPUCells, counted(d.Unassigned.Cells))
	row("(all)", d.GPUs, d.CPUCells, nil)
	return t
}

func counted(cells []cell.LevelCount) []string {
	var out []string
	for _, c := range cells {
		out = append(out, fmt.Sprintf("%d × %s", c.Count, c.CellType))
	}
	return out
}

func percent(part, whole int) string {
	if whole == 0 {
		return "-"
	}
	return fmt.Sprintf("%.1f%%", 100*float64(part)/float64(whole))
}
