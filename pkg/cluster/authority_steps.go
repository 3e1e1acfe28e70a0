package cluster

import (
	"cmp"
	"context"
	"encoding/base64"
	"fmt"
	"slices"
	"strings"
	"time"

	"github.com/openpai/paictl/pkg/cluster/engine"
	"github.com/openpai/paictl/pkg/cluster/phases"
	"github.com/openpai/paictl/pkg/cluster/pki"
	"github.com/openpai/paictl/pkg/hint"
	"github.com/openpai/paictl/pkg/ssh"
)

// bring changes all machines as the given step requires. It changes the masters one after the other, and then the workers.
func (k *caRotation) bring(ctx context.Context, step caStep) error {
	for _, n := range k.masters {
		if err := k.change(ctx, n, step); err != nil {
			return fmt.Errorf("%s: %w", n.Hostname, err)
		}
	}
	errs := k.Each(ctx, k.Working(k.workers), func(ctx context.Context, n *engine.Node) error { return k.change(ctx, n, step) })
	if err := k.SetAsideAll(ctx, step.phase(), errs); err != nil {
		return err
	}
	leader := k.masters[0]
	ca := base64.StdEncoding.EncodeToString(k.bundle(kubernetesCA, step))
	_, err := k.Script(ctx, leader, step.phase(), "cluster-info", k.Spec.SelfAPI(leader)+authorityScript+"a_info "+ca+"\n")
	return err
}

// change changes one machine as the given step requires. It first reads the current state of the machine, because the kubelet or the daily renewal
// may have replaced certificates and keys.
func (k *caRotation) change(ctx context.Context, n *engine.Node, step caStep) error {
	if err := k.look(ctx, n); err != nil {
		return err
	}
	m := k.machine(n)
	if m == nil {
		return hint.Errorf("run paictl cluster up once the rotation has ended", "it is no longer a member of the cluster")
	}
	edits, err := k.edits(n, m, step)
	if err != nil || len(edits) == 0 && len(m.due) == 0 {
		return err
	}
	return tell(ctx, k.Run, n, step.phase(), func(ctx context.Context, n *engine.Node) ([]engine.Change, error) {
		if err := k.othersReady(ctx, n); err != nil {
			return nil, err
		}
		var done []engine.Change
		if len(edits) > 0 {
			var b strings.Builder
			if n.ControlPlane {
				b.WriteString(phases.CertificatesScript + "c_restore\n") // an interrupted renewal used the previous CA
			}
			b.WriteString("a_due " + strings.Join(holders(n), " ") + "\n")
			for _, e := range edits {
				b.WriteString(e.shell)
				done = append(done, engine.Change{Action: "update", Target: e.path, Detail: e.detail})
			}
			if _, err := k.Script(ctx, n, step.phase(), "apply", authorityScript+b.String()); err != nil {
				return nil, err
			}
		}
		restarted, err := k.restart(ctx, n, step)
		if err != nil {
			return done, err
		}
		return append(done, restarted...), k.look(ctx, n)
	})
}

// othersReady returns an error unless the API servers of all other masters are ready. Otherwise a restart of n could cost etcd its majority.
func (k *caRotation) othersReady(ctx context.Context, n *engine.Node) error {
	if !n.ControlPlane {
		return nil
	}
	for _, other := range k.masters {
		if other == n {
			continue
		}
		if err := k.awaitAPI(ctx, other); err != nil {
			return hint.Errorf("see paictl cluster status", "%s is not ready, so %s isn't restarted: %w", other.Hostname, n.Hostname, err)
		}
	}
	return nil
}

// awaitAPI waits until the API server of a master is ready. Restarts that an interrupted run has begun may still be in progress.
func (k *caRotation) awaitAPI(ctx context.Context, n *engine.Node) error {
	limit := cmp.Or(k.how.Wait, readyLimit)
	for end, told := k.Opts.Clock().Add(limit), false; ; told = true {
		_, err := k.Read(ctx, n, "authority", "ready", k.Spec.SelfAPI(n)+"self get --raw /readyz --request-timeout=15s >/dev/null\n")
		if err == nil || !k.Opts.Clock().Before(end) {
			return err
		}
		if !told {
			k.Emit(engine.Event{Kind: engine.EventNote, Message: fmt.Sprintf("the API server of %s isn't ready; waiting for it, at most %s", n.Hostname, limit)})
		}
		if err := k.pause(ctx, min(readyPause, limit)); err != nil {
			return err
		}
	}
}

func holders(n *engine.Node) []string {
	if n.ControlPlane {
		return []string{"etcd", "kube-apiserver", "kube-controller-manager", "kube-scheduler", kubeletComponent}
	}
	return []string{kubeletComponent}
}

const kubeletComponent = "kubelet"

// restart restarts the programs that haven't read their new certificates yet. It waits until each program works.
func (k *caRotation) restart(ctx context.Context, n *engine.Node, step caStep) ([]engine.Change, error) {
	var done []engine.Change
	if n.ControlPlane {
		res, err := k.Exec(ctx, n, ssh.Script{Name: step.phase() + "/restart", Mutates: true, Timeout: restartLimit,
			Body: engine.PreludeScript + fmt.Sprintf("sh \"$R%s\" 1\n", phases.RenewScript)})
		if err != nil {
			return nil, err
		}
		for line := range strings.Lines(string(res.Stdout)) {
			if name, ok := strings.CutPrefix(strings.TrimSpace(line), "restarted "); ok {
				done = append(done, engine.Change{Action: "restart", Target: "static pod " + name})
			}
		}
	}
	wait := 0
	if k.Spec.Config.Kubernetes.Kubernetes.NetworkPlugin == phases.FlannelPlugin {
		wait = 1
	}
	_, err := k.Script(ctx, n, step.phase(), "kubelet", phases.NodeReady(n)+phases.KubeletScript+authorityScript+fmt.Sprintf("a_kubelet %d\n", wait))
	if err != nil {
		return done, err
	}
	return append(done, engine.Change{Action: "restart", Target: phases.KubeletName}), nil
}

// follows reports whether a machine's kubelet has a certificate that the new CA has signed.
func (k *caRotation) follows(n *engine.Node) bool {
	m := k.machine(n)
	if m == nil || k.IsAside(n) {
		return false
	}
	certs := m.pems[kubeletCert]
	if conf := m.confs[kubeletConf]; len(conf.cert) > 0 {
		certs, _ = pki.Parse(conf.cert) // a certificate that can't be parsed counts as missing
	}
	return len(certs) > 0 && pki.Signed(k.next[kubernetesCA].Cert, certs[0])
}

// refuseLeft returns an error if any node has no certificate of the new CA. A node without such a certificate would fail without the old CA.
func (k *caRotation) refuseLeft(ctx context.Context) error {
	if k.old == nil {
		return nil
	}
	a, err := k.nodes(ctx)
	if err != nil {
		return err
	}
	var left []string
	for _, row := range a.All("node") {
		if len(row) > 0 && !slices.ContainsFunc(k.Spec.Nodes, func(n *engine.Node) bool { return n.Hostname == row[0] && k.follows(n) }) {
			left = append(left, row[0])
		}
	}
	slices.Sort(left)
	if len(left) == 0 {
		return nil
	}
	message := "the old authority is still needed by " + strings.Join(left, ", ") + ": no answer, or its kubelet has another certificate than one of the old authority for its own name"
	if k.how.Leave {
		k.Emit(engine.Event{Kind: engine.EventWarning, Phase: phaseForget, Message: message, Hint: "once it is back: paictl cluster certs rotate-ca --catch-up"})
		return nil
	}
	return hint.Errorf("run the same command again once it answers, or remove it from the cluster: paictl node remove "+left[0]+"; to continue without it: --leave-behind", "%s", message)
}

// unpublish makes the API servers announce only the new CAs to extensions. Each API server adds all CAs that it trusts to the announced CAs. An API
// server that restarts early therefore adds the old CAs again, so unpublish checks the result and repeats the change.
func (k *caRotation) unpublish(ctx context.Context) error {
	leader := k.masters[0]
	for try := 0; ; try++ {
		a, err := engine.Answer(k.Read(ctx, leader, phaseForget, "published", k.Spec.SelfAPI(leader)+authorityScript+"a_published\n"))
		if err != nil {
			return err
		}
		old := false
		for _, row := range a.All("published") {
			certs, _ := pki.Parse(engine.Decoded(strings.Join(row, ""))) // an empty row contains no old certificates
			for _, was := range k.old {
				old = old || slices.ContainsFunc(certs, was.Equal)
			}
		}
		switch {
		case !old:
			return nil
		case try > 5:
			return hint.Errorf("run the same command again", "API servers still tell extensions to trust the old authorities (configmap kube-system/extension-apiserver-authentication)")
		}
		if _, err := k.Script(ctx, leader, phaseForget, "publish", k.Spec.SelfAPI(leader)+authorityScript+"a_publish\n"); err != nil {
			return err
		}
		if err := k.pause(ctx, time.Duration(min(try, 1))*10*time.Second); err != nil {
			return err
		}
	}
}

func (*caRotation) pause(ctx context.Context, d time.Duration) error {
	t := time.NewTimer(d)
	defer t.Stop()
	select {
	case <-ctx.Done():
		return context.Cause(ctx)
	case <-t.C:
		return nil
	}
}

// end restarts the pods that have read the old CA, and removes the files of the rotation from the masters.
func (k *caRotation) end(ctx context.Context) error {
	leader := k.masters[0]
	if k.old != nil {
		if err := k.unpublish(ctx); err != nil {
			return err
		}
		if _, err := k.Script(ctx, leader, phaseForget, "pods", k.Spec.SelfAPI(leader)+authorityScript+"a_renew_pods\n"); err != nil {
			return err
		}
	}
	for n, err := range k.Each(ctx, k.masters, func(ctx context.Context, n *engine.Node) error {
		_, err := k.Script(ctx, n, phaseForget, "end", authorityScript+"a_end\n")
		return err
	}) {
		return fmt.Errorf("%s: %w", n.Hostname, err)
	}
	return nil
}
