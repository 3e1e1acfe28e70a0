package node

import (
	"context"
	"crypto/rand"
	"encoding/hex"
	"errors"
	"fmt"
	"os/user"
	"slices"
	"strconv"
	"strings"
	"time"

	"github.com/spf13/cobra"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/client-go/kubernetes"

	"github.com/openpai/paictl/pkg/client"
	"github.com/openpai/paictl/pkg/cmd/connection"
	"github.com/openpai/paictl/pkg/cmdutil"
	"github.com/openpai/paictl/pkg/hint"
	"github.com/openpai/paictl/pkg/kube"
	"github.com/openpai/paictl/pkg/node/agent/repair"
	"github.com/openpai/paictl/pkg/scheduler/api"
	v3 "github.com/openpai/paictl/pkg/server/v3/api"
)

// NewCmdGPU returns "paictl node gpu".
func NewCmdGPU(f *cmdutil.Factory) *cobra.Command {
	cmd := &cobra.Command{
		Use:   "gpu",
		Short: "Show the GPUs of machines, reset sick ones, ignore their problems",
		Long: `A GPU that breaks gets no more jobs, and the others of its machine continue. These commands say what is
wrong with it, and bring it back into service. "reset" and "ignore" talk to the machine's agent through the
Kubernetes API, and need a kubeconfig that may change nodes. "list" also works for administrators after
"paictl login".`,
		Example: `  paictl node gpu list
  paictl node gpu reset gpu-1 3
  paictl node gpu ignore gpu-1 3`,
	}
	cmd.AddCommand(NewCmdGPUList(f), NewCmdGPUReset(f), NewCmdGPUIgnore(f))
	return cmd
}

// GPUListOptions are the options of "paictl node gpu list".
type GPUListOptions struct {
	Factory    *cmdutil.Factory
	Connection connection.Flags
	Output     cmdutil.Output
	Nodes      []string
	Sick       bool
}

// NewCmdGPUList returns "paictl node gpu list".
func NewCmdGPUList(f *cmdutil.Factory) *cobra.Command {
	opts := &GPUListOptions{Factory: f}
	cmd := &cobra.Command{
		Use:     "list [NODE...]",
		Aliases: []string{"ls"},
		Short:   "Show GPUs and their problems",
		Long: `Shows the GPUs of all machines, or of the named ones, as their agents last reported them. State is
healthy, sick (it gets no jobs), or ignored (it has a problem, but someone ordered to use it). A machine whose
agent has never reported is not shown.`,
		Example: `  paictl node gpu list
  paictl node gpu list --sick
  paictl node gpu list gpu-1 -o json`,
		RunE: func(cmd *cobra.Command, args []string) error {
			opts.Nodes = args
			return gpuListRun(cmd.Context(), opts)
		},
		ValidArgsFunction: connection.Complete(f, &opts.Connection, 0, (*client.Server).GPUs, func(all *v3.GPUs) (out []string) {
			for _, g := range all.Items {
				out = append(out, g.Node)
			}
			return slices.Compact(out)
		}),
	}
	opts.Connection.AddFlags(f, cmd)
	cmd.Flags().BoolVar(&opts.Sick, "sick", false, "only GPUs with a problem")
	cmdutil.AddOutputFlag(cmd, &opts.Output)
	return cmd
}

func gpuListRun(ctx context.Context, opts *GPUListOptions) error {
	w, err := opts.Connection.Open(opts.Factory)
	if err != nil {
		return err
	}
	all, err := w.Server.GPUs(ctx)
	if err != nil {
		return err
	}
	for _, name := range opts.Nodes {
		if !slices.Contains(all.Nodes, name) {
			return noNode(name)
		}
	}
	rows := slices.DeleteFunc(all.Items, func(g api.GPU) bool {
		return len(opts.Nodes) > 0 && !slices.Contains(opts.Nodes, g.Node) || opts.Sick && g.State == api.GPUHealthy
	})
	return opts.Output.Write(opts.Factory.IO.Out, rows, gpuTable(rows))
}

// gpuTable returns a table of GPUs. It has a column for MIG instances if the configuration splits any of the GPUs.
func gpuTable(rows []api.GPU) cmdutil.Table {
	t := cmdutil.Table{Header: []string{"NODE", "GPU", "MODEL", "STATE", "REASON"}}
	split := slices.ContainsFunc(rows, func(r api.GPU) bool { return r.MIG != "" })
	if split {
		t.Header = slices.Insert(t.Header, 3, "INSTANCES")
	}
	for _, r := range rows {
		row := []string{r.Node, strconv.Itoa(int(r.GPU)), r.Model, r.State, r.Reason}
		if split {
			row = slices.Insert(row, 3, instances(&r))
		}
		t.Rows = append(t.Rows, row)
	}
	return t
}

// instances returns the number and type of the instances into which the configuration splits a GPU. It returns "" if the GPU isn't split.
func instances(g *api.GPU) string {
	if g.MIG == "" {
		return ""
	}
	return fmt.Sprintf("%d x %s", len(g.Instances), g.MIG)
}

// GPURepairOptions are the options of "paictl node gpu reset" and "ignore".
type GPURepairOptions struct {
	Factory *cmdutil.Factory
	Kube    kube.Options
	Output  cmdutil.Output
	Node    string
	GPU     int32
	Action  repair.Action
	Undo    bool
	Timeout time.Duration
}

// NewCmdGPUReset returns "paictl node gpu reset".
func NewCmdGPUReset(f *cmdutil.Factory) *cobra.Command {
	opts := &GPURepairOptions{Factory: f, Action: repair.Reset}
	cmd := &cobra.Command{
		Use:   "reset NODE GPU",
		Short: "Reset a GPU that no job uses",
		Long: `Makes the agent of the machine reset a GPU (nvidia-smi --gpu-reset), which clears many errors without a
restart of the machine. The reset is refused while a pod has the GPU, and if only a restart helps. During
the reset no pod gets the GPU. GPUs that are connected by NVLink can often only be reset together: then
restart the machine.`,
		Example: `  paictl node gpu reset gpu-1 3`,
	}
	opts.add(cmd)
	cmd.Flags().DurationVar(&opts.Timeout, "timeout", 2*time.Minute, "how long to wait for the agent")
	return cmd
}

// NewCmdGPUIgnore returns "paictl node gpu ignore".
func NewCmdGPUIgnore(f *cmdutil.Factory) *cobra.Command {
	opts := &GPURepairOptions{Factory: f, Action: repair.Ignore}
	cmd := &cobra.Command{
		Use:   "ignore NODE GPU",
		Short: "Use a GPU although it has a problem",
		Long: `Lets a sick GPU get jobs again although its problem remains, until it has a new one: another error, or
one more memory error. --undo reverts this. A GPU that doesn't answer can't be used.`,
		Example: `  paictl node gpu ignore gpu-1 3
  paictl node gpu ignore gpu-1 3 --undo`,
	}
	opts.add(cmd)
	cmd.Flags().BoolVar(&opts.Undo, "undo", false, "stop ignoring the problem")
	cmd.Flags().DurationVar(&opts.Timeout, "timeout", 30*time.Second, "how long to wait for the agent")
	return cmd
}

func (opts *GPURepairOptions) add(cmd *cobra.Command) {
	cmd.Args = cobra.ExactArgs(2)
	cmd.ValidArgsFunction = opts.Factory.Complete(1, opts.nodes)
	cmd.RunE = func(cmd *cobra.Command, args []string) error {
		n, err := strconv.ParseInt(args[1], 10, 32)
		if err != nil || n < 0 {
			return cmdutil.Usagef("%q is not the number of a GPU: they are counted from 0 (paictl node gpu list)", args[1])
		}
		opts.Node, opts.GPU = args[0], int32(n)
		if opts.Undo {
			opts.Action = repair.Heed
		}
		return gpuOrderRun(cmd.Context(), opts)
	}
	cmdutil.AddKubeFlags(cmd, &opts.Kube)
	cmdutil.AddOutputFlag(cmd, &opts.Output, "text", "json")
}

// answerEvery is the time between two checks whether the agent has responded.
const answerEvery = 300 * time.Millisecond

func gpuOrderRun(ctx context.Context, opts *GPURepairOptions) error {
	c, err := kube.Open(opts.Kube)
	if err != nil {
		return err
	}
	n, err := c.Client.CoreV1().Nodes().Get(ctx, opts.Node, metav1.GetOptions{})
	if apierrors.IsNotFound(err) {
		return noNode(opts.Node)
	}
	if err != nil {
		return err
	}
	if n.Annotations[api.DevicesAnnotation] == "" {
		return hint.Errorf("see whether it runs there: paictl service status -n agent", "no agent has reported GPUs of %s", opts.Node)
	}
	id := make([]byte, 8)
	_, _ = rand.Read(id) // never fails, by its documentation
	reason := ""
	if opts.Action == repair.Ignore {
		if reported, err := api.ReadDevices(n.Annotations); err == nil {
			for _, g := range reported.GPUs(n.Name) {
				if g.GPU == opts.GPU && g.State == api.GPUSick {
					reason = g.Reason // the reason that the user saw, and no later one
				}
			}
		}
	}
	o := repair.Request{Reason: reason, ID: hex.EncodeToString(id), GPU: opts.GPU, Action: opts.Action, At: time.Now().UTC(), By: who()}
	if err := repair.Add(ctx, c.Client, opts.Node, o); err != nil {
		return fmt.Errorf("write the order on node %s: %w", opts.Node, err)
	}
	a, err := awaitAnswer(ctx, c.Client, opts, o)
	if err != nil {
		return err
	}
	if !a.Done {
		return hint.Errorf(refusedHint(a.Message), "GPU %d of %s is as it was, %s was refused: %s", opts.GPU, opts.Node, opts.Action, a.Message)
	}
	if opts.Output.Is("json") {
		return opts.Output.Write(opts.Factory.IO.Out, a, cmdutil.Table{})
	}
	_, err = fmt.Fprintf(opts.Factory.IO.Out, "GPU %d of %s: %s\n", opts.GPU, opts.Node, a.Message)
	return err
}

// refusedHint returns a remedy for an error of nvidia-smi. It returns "" for errors of the agent, whose texts already contain a remedy.
func refusedHint(message string) string {
	if strings.HasPrefix(message, "nvidia-smi") {
		return "if it can't be reset, drain and restart the machine: paictl node drain NODE --reason TEXT (without the service alert-handler: kubectl drain NODE --ignore-daemonsets --delete-emptydir-data)"
	}
	return ""
}

// awaitAnswer waits for the agent's response to a request. An agent that wasn't running may execute the request shortly after the wait has
// ended.
func awaitAnswer(ctx context.Context, client kubernetes.Interface, opts *GPURepairOptions, o repair.Request) (repair.Answer, error) {
	limited, cancel := context.WithTimeoutCause(ctx, opts.Timeout, hint.Errorf(
		fmt.Sprintf("see whether it runs: paictl service status -n agent; if it is back within %s, it may still execute the order", repair.Valid),
		"the agent of %s hasn't answered for %s", opts.Node, opts.Timeout))
	defer cancel()
	for {
		n, err := client.CoreV1().Nodes().Get(limited, opts.Node, metav1.GetOptions{})
		if err == nil {
			answers, _ := repair.ReadAnswers(n) // the next annotation may be readable
			if i := slices.IndexFunc(answers, func(a repair.Answer) bool { return a.ID == o.ID }); i >= 0 {
				return answers[i], nil
			}
			if orders, err := repair.Read(n); err == nil && !slices.ContainsFunc(orders, func(x repair.Request) bool { return x.ID == o.ID }) {
				return repair.Answer{}, errors.New("another order for the GPU has replaced this one")
			}
		}
		select {
		case <-limited.Done():
			return repair.Answer{}, context.Cause(limited)
		case <-time.After(answerEvery):
		}
	}
}

// Returns the name of the user who makes the request, or "" if the name isn't known.
func who() string {
	if u, err := user.Current(); err == nil {
		return u.Username
	}
	return ""
}

func noNode(name string) error {
	return hint.Errorf("kubectl get nodes lists them", "the cluster has no node %s", name)
}

// nodes returns the names of the nodes whose agents have reported GPUs.
func (opts *GPURepairOptions) nodes(ctx context.Context, _ []string) (out []string, _ error) {
	c, err := kube.Open(opts.Kube)
	if err != nil {
		return nil, err
	}
	nodes, err := c.Client.CoreV1().Nodes().List(ctx, metav1.ListOptions{})
	if err != nil {
		return nil, err
	}
	for i := range nodes.Items {
		if nodes.Items[i].Annotations[api.DevicesAnnotation] != "" {
			out = append(out, nodes.Items[i].Name)
		}
	}
	return out, nil
}
