package cluster

import (
	"context"
	"fmt"
	"maps"
	"slices"
	"strings"
	"time"

	"github.com/openpai/paictl/pkg/cluster/engine"
	"github.com/openpai/paictl/pkg/cluster/shell"
	"github.com/openpai/paictl/pkg/hint"
	"github.com/openpai/paictl/pkg/ssh"
)

const phaseUncordon = "uncordon"

// rotation cordons and drains a few machines of a working cluster at a time, and uncordons them afterwards. An annotation marks the nodes that the
// run has cordoned. If the run is interrupted, the next run uncordons the marked nodes.
type rotation struct {
	*engine.Run
	// name is the prefix of the names of the scripts. mark is the name of the annotation.
	name, mark string
	// marked holds the nodes that an earlier run has left cordoned.
	marked map[string]bool
	// cordoned holds the nodes that a user or another program has cordoned. The run doesn't uncordon these nodes.
	cordoned map[string]bool
	// out holds the machines that this run has cordoned. restarted holds the machines whose kubelets must report again.
	out, restarted map[string]bool
}

func newRotation(r *engine.Run, name, mark string) rotation {
	return rotation{Run: r, name: name, mark: mark, marked: map[string]bool{}, cordoned: map[string]bool{}, out: map[string]bool{}, restarted: map[string]bool{}}
}

// readMarks reads which nodes are cordoned, and which of them have the annotation.
func (u *rotation) readMarks(ctx context.Context) error {
	a, err := engine.Answer(u.Exec(ctx, u.Leader, ssh.Script{Name: u.name + "/marks", Timeout: time.Minute,
		Body: engine.PreludeScript + u.Spec.SelfAPI(u.Leader) + fmt.Sprintf("self get nodes -o go-template='%s'\n",
			fmt.Sprintf(`{{range .items}}{{$name := .metadata.name}}{{$at := ""}}{{range .spec.taints}}{{if eq .key "node.kubernetes.io/unschedulable"}}{{with .timeAdded}}{{$at = .}}{{end}}{{end}}{{end}}`+
				`{{if .spec.unschedulable}}cordoned{{"\t"}}{{$name}}{{"\t"}}{{$at}}{{"\n"}}{{end}}`+
				`{{with .metadata.annotations}}{{with index . %q}}marked{{"\t"}}{{$name}}{{"\t"}}{{printf "%%q" .}}{{"\n"}}{{end}}{{end}}{{end}}`, u.mark))}))
	if err != nil {
		return err
	}
	for _, row := range a.All("cordoned") {
		mark, _ := a.Row("marked", row[0])
		if len(mark) > 0 { // a user with write access to the node may have written any text
			mark[0] = strings.Trim(mark[0], `"`)
		}
		// Ignore the annotation of a node that isn't cordoned, or that a user or another program has cordoned since.
		ours := len(mark) > 0 && (mark[0] == "now" || len(row) < 2 || row[1] == "" || mark[0] == row[1])
		u.marked[row[0]], u.cordoned[row[0]] = ours, !ours
	}
	return nil
}

// tellLeft warns about machines that an earlier run has left cordoned and that this run doesn't include. The function command returns the command
// that uncordons a machine.
func (u *rotation) tellLeft(nodes []*engine.Node, command func(host string) string) {
	for _, name := range slices.Sorted(maps.Keys(u.marked)) {
		if u.marked[name] && !slices.ContainsFunc(nodes, func(n *engine.Node) bool { return n.Hostname == name }) {
			u.Emit(engine.Event{Kind: engine.EventWarning, Host: name, Phase: phasePreflight, Message: "an earlier run has left the machine cordoned, and this run doesn't include it",
				Hint: command(name) + "; to use it as it is: " + hint.Uncordon(name)})
		}
	}
}

// isOut reports whether this run has cordoned a machine and not uncordoned it yet.
func (u *rotation) isOut(n *engine.Node) bool {
	u.Mu.Lock()
	defer u.Mu.Unlock()
	return u.out[n.Hostname]
}

func (u *rotation) setOut(n *engine.Node, is bool) {
	u.Mu.Lock()
	defer u.Mu.Unlock()
	u.out[n.Hostname] = is
}

// cordon writes the annotation and then cordons the node. If another user has cordoned the node, cordon doesn't write the annotation.
func (u *rotation) cordon(ctx context.Context, n *engine.Node) error {
	if _, err := onLeader(ctx, u.Run, u.name+"/mark", fmt.Sprintf("NODE=%s MARK=%s\nr_mark\n", shell.Quote(n.Hostname), u.mark), time.Minute); err != nil {
		return err
	}
	u.setOut(n, true)
	return nil
}

// drain cordons a node and evicts its pods. If force is set, it also deletes pods that a disruption budget or a missing owner protects.
func (u *rotation) drain(ctx context.Context, n *engine.Node, force bool, limit time.Duration) ([]engine.Change, error) {
	if err := u.cordon(ctx, n); err != nil {
		return nil, err
	}
	how := 0
	if force {
		how = 1
	}
	return evict(ctx, u.Run, n, how, limit)
}

// uncordon waits until a node is Ready. It uncordons the node if this command has cordoned it.
func (u *rotation) uncordon(ctx context.Context, n *engine.Node) ([]engine.Change, error) {
	fresh := 0
	u.Mu.Lock()
	if u.restarted[n.Hostname] || u.marked[n.Hostname] { // an earlier run may have restarted it
		fresh = 1
	}
	u.Mu.Unlock()
	a, err := onLeader(ctx, u.Run, u.name+"/uncordon", fmt.Sprintf("NODE=%s MARK=%s FRESH=%d\nr_unmark\n", shell.Quote(n.Hostname), u.mark, fresh), 2*readyAgain+time.Minute)
	if err != nil {
		return nil, err
	}
	u.setOut(n, false)
	if _, ok := a.Row("uncordoned"); !ok {
		return nil, nil
	}
	return []engine.Change{{Action: "uncordon", Target: "node " + n.Hostname}}, nil
}

func staysCordoned(n *engine.Node) string {
	return "; the machine stays cordoned until this command succeeds; to use it as it is: " + hint.Uncordon(n.Hostname)
}
