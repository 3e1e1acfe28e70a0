package cluster

import (
	"bytes"
	"context"
	"sync"

	"github.com/openpai/paictl/pkg/cluster/answer"
	"github.com/openpai/paictl/pkg/cluster/engine"
	"github.com/openpai/paictl/pkg/ssh"
)

// statusFollows separates the output of the caller's script from the machine's status.
const statusFollows = "\n@@ paictl status\n"

// QueryMachines queries every machine once for its status, and for the output of the script that more returns for the machine. It passes each output to
// heard as soon as the output arrives, and doesn't store it, so outputs may be large. It may call heard concurrently. If the response of a machine
// is interrupted, heard receives the error and the partial output. The script runs without "set -e" and must not change anything. The returned
// status covers all machines that responded.
func QueryMachines(ctx context.Context, s *engine.Spec, o engine.Options, more func(*engine.Node) string, heard func(n *engine.Node, said []byte, err error)) (*Status, error) {
	o.DryRun = true
	r := engine.NewRun(s, o)
	defer r.Close()
	nodes, err := r.Selected()
	if err != nil {
		return nil, err
	}
	var mu sync.Mutex
	answers := map[*engine.Node]answer.Answer{}
	errs := r.Each(ctx, nodes, func(ctx context.Context, n *engine.Node) error {
		said, status, err := hearFrom(ctx, r, n, more(n))
		heard(n, said, err)
		if err != nil {
			return err
		}
		mu.Lock()
		defer mu.Unlock()
		answers[n], err = answer.Parse(status)
		return err
	})
	if ctx.Err() != nil {
		return nil, context.Cause(ctx)
	}
	return newStatus(s, nodes, answers, errs, o.Clock()), nil
}

func hearFrom(ctx context.Context, r *engine.Run, n *engine.Node, more string) (said, status []byte, err error) {
	if err := r.Dial(ctx, n); err != nil {
		return nil, nil, err
	}
	body := engine.PreludeScript + statusScript + "(\nset +e\n" + more + "\n) || :\nprintf '" + `\n@@ paictl status\n` + "'\n" + statusCall(r.Spec, n, false)
	res, err := r.Exec(ctx, n, ssh.Script{Name: "hear", Timeout: r.Opts.StepTimeout, Body: body})
	if i := bytes.LastIndex(res.Stdout, []byte(statusFollows)); i >= 0 {
		return res.Stdout[:i], bytes.Clone(res.Stdout[i+len(statusFollows):]), err
	}
	return res.Stdout, nil, err
}
