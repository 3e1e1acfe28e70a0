package e2e

import (
	"encoding/json"
	"fmt"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	actions "github.com/openpai/paictl/pkg/alerthandler/v1"
	"github.com/openpai/paictl/pkg/audit"
)

// actions returns the Actions that were created during the test, the oldest first.
func (h *handled) actions() (out []actions.Action) {
	h.t.Helper()
	var list struct{ Items []actions.Action }
	require.NoError(h.t, json.Unmarshal([]byte(h.kubectl("get actions.paictl.openpai.org --sort-by=.metadata.creationTimestamp -o json")), &list))
	for i := range list.Items {
		if !h.known[list.Items[i].Name] {
			out = append(out, list.Items[i])
		}
	}
	return out
}

// of returns the Actions with an operation and a target. The target is a job, or a GPU of a machine.
func of(all []actions.Action, do actions.Operation, target string) (out []actions.Action) {
	for i := range all {
		if all[i].Spec.Do == do && targetOf(&all[i].Spec) == target {
			out = append(out, all[i])
		}
	}
	return out
}

// targetOf returns the target of an Action. If a policy drains or returns a machine because of a GPU, the target includes the GPU, because the same
// machine may be drained for another GPU later.
func targetOf(s *actions.ActionSpec) string {
	if s.Machine != nil && s.Machine.GPU != nil {
		return fmt.Sprintf("GPU %d of %s", *s.Machine.GPU, s.Machine.Name)
	}
	return s.Target()
}

// ended returns the only Action with an operation and a target. The result is false if the Action hasn't ended.
func ended(all []actions.Action, do actions.Operation, target string) (*actions.Action, bool) {
	if got := of(all, do, target); len(got) == 1 && got[0].Status.Phase.Final() {
		return &got[0], true
	}
	return nil, false
}

// kill kills the process of the handler, and deletes its pods. A new pod starts immediately, whereas the kubelet would wait longer with each restart
// of the container.
func (h *handled) kill() {
	h.t.Helper()
	for at := range strings.FieldsSeq(h.kubectl(`-n pai-system get pods -l app.kubernetes.io/name=alert-handler -o jsonpath='{.items[*].spec.nodeName}'`)) {
		if out, _ := h.try(at, "pkill -9 -f '[p]ai-alert-handler --listen' && echo killed"); strings.Contains(out, "killed") {
			h.kills++
		}
	}
	h.kubectl("-n pai-system delete pods -l app.kubernetes.io/name=alert-handler --grace-period=0 --force")
}

// killedAtEachStep kills the handler whenever the phase of an Action has changed, until done returns true.
func (h *handled) killedAtEachStep(t *testing.T, limit time.Duration, what string, done func([]actions.Action) bool) {
	t.Helper()
	phases := func(all []actions.Action) string {
		var b strings.Builder
		for i := range all {
			fmt.Fprintf(&b, "%s: %s\n", all[i].Name, all[i].Status.Phase)
		}
		return b.String()
	}
	last := phases(h.actions())
	eventually(t, limit, what, func() bool {
		all := h.actions()
		if now := phases(all); now != last {
			last = now
			for i := range all {
				t.Logf("%s of %s: %s: %s", all[i].Spec.Do, all[i].Spec.Target(), all[i].Status.Phase, all[i].Status.Message)
			}
			h.kill()
		}
		return done(all)
	})
}

// records returns the audit records about Actions.
func (h *handled) records(flags ...string) []audit.Record {
	h.t.Helper()
	var page audit.Page
	require.NoError(h.t, json.Unmarshal([]byte(ok(h.t, h.args(append([]string{"audit", "--kind", "action", "--limit", "200", "-o", "json"}, flags...)...)...).stdout), &page))
	return page.Items
}

// recorded waits for the audit record of an Action, and returns it. There must be exactly one such record.
func (h *handled) recorded(t *testing.T, a *actions.Action) audit.Record {
	t.Helper()
	var got []audit.Record
	eventually(t, time.Minute, "the audit has "+a.Name, func() bool {
		got = h.records("--object", a.Name)
		return len(got) > 0
	})
	require.Len(t, got, 1, "its effect is recorded once")
	assert.Equal(t, string(a.Spec.Do), got[0].Verb)
	assert.Equal(t, a.Spec.By.Text(), got[0].Actor)
	assert.Equal(t, a.Spec.Target(), got[0].Detail["target"])
	return got[0]
}
