package policy_test

import (
	"strings"
	"testing"
	"time"
	"unicode/utf8"

	"github.com/stretchr/testify/require"

	"github.com/openpai/paictl/pkg/alerthandler/policy"
	v1 "github.com/openpai/paictl/pkg/alerthandler/v1"
)

const good = `{"limits":{"stopsPerHour":1,"returns":3,"returnsWithin":"168h"},"drainTimeout":"30m","keep":"24h","policies":[
	{"name":"idle","alerts":{"alertname":"Idle|Asleep","severity":"warning"},"exempt":{"users":["ann"],"virtualClusters":["lab"],"tags":["keep"],"machines":["n1"]},"steps":[{"do":"stop-job","grace":"4h"}]}]}`

// Each label must match its expression as a whole.
func TestAPolicySelectsAlerts(t *testing.T) {
	c, err := policy.Read([]byte(good))
	require.NoError(t, err)
	p := c.ByName("idle")
	require.NotNil(t, p)
	require.Nil(t, c.ByName("other"))
	for labels, want := range map[string]bool{
		"alertname=Idle severity=warning":           true,
		"alertname=Asleep severity=warning x=y":     true,
		"alertname=NotIdle severity=warning":        false,
		"alertname=IdleNot severity=warning":        false,
		"alertname=Idle":                            false,
		"alertname=Idle severity=warning2":          false,
		"":                                          false,
		"severity=warning":                          false,
		"alertname=Idle|Asleep severity=warning":    false,
		"alertname=Idle severity=warning user=root": true,
	} {
		require.Equal(t, want, p.Applies(alert(labels)), labels)
	}
}

func alert(labels string) *policy.Alert {
	a := &policy.Alert{Labels: map[string]string{}, StartsAt: time.Unix(1, 0)}
	for _, l := range strings.Fields(labels) {
		k, v, _ := strings.Cut(l, "=")
		a.Labels[k] = v
	}
	return a
}

func TestExemptions(t *testing.T) {
	c, err := policy.Read([]byte(good))
	require.NoError(t, err)
	p := c.ByName("idle")
	for _, s := range []policy.Subject{{User: "ann"}, {User: "bob", VirtualCluster: "lab"}, {User: "bob", Tags: []string{"x", "keep"}}, {Machine: "n1"}} {
		require.NotEmpty(t, p.Exempts(&s), "%+v", s)
	}
	for _, s := range []policy.Subject{{}, {User: "bob", VirtualCluster: "default", Tags: []string{"keeps"}}, {Machine: "n2"}} {
		require.Empty(t, p.Exempts(&s), "%+v", s)
	}
}

// An invalid configuration is rejected with an error.
func TestWrongConfigurations(t *testing.T) {
	for from, to := range map[string]string{
		`"drainTimeout":"30m"`: `"drainTimeout":"30"`, `"keep":"24h"`: `"keep":"23h"`, `"do":"stop-job"`: `"do":"explode"`, `"grace":"4h"`: `"grace":"-1s"`,
		`"name":"idle"`: `"name":"Idle!"`, `"stopsPerHour":1`: `"stopsPerHour":-1`, `"stopsPerHour":1,`: `"restartsPerHour":-1,`,
		`"returns":3`: `"returns":21`, `"returnsWithin":"168h"`: `"returnsWithin":"59m"`, `"returns":3,`: `"returns":-1,`, `"exempt"`: `"exemptt"`, `Idle|Asleep`: `(`,
		`"alerts":{"alertname":"Idle|Asleep","severity":"warning"}`: `"alerts":{}`, `[{"do":"stop-job","grace":"4h"}]`: `[]`,
	} {
		text := strings.Replace(good, from, to, 1)
		require.NotEqual(t, good, text)
		_, err := policy.Read([]byte(text))
		require.Error(t, err, to)
	}
}

// A policy may restart machines only if restarts are allowed, and only after a drain.
func TestPoliciesThatRestartMachines(t *testing.T) {
	for steps, want := range map[string]string{
		`{"do":"drain"},{"do":"restart-machine"},{"do":"uncordon"}`:                "",
		`{"do":"restart-machine"}`:                                                 "policies[0].steps[0].do: the machine isn't drained before its restart",
		`{"do":"cordon"},{"do":"restart-machine"},{"do":"drain"}`:                  "policies[0].steps[1].do: the machine isn't drained before its restart",
		`{"do":"stop-job"},{"do":"restart-machine"}`:                               "policies[0].steps[1].do: restart-machine acts on another target",
		`{"do":"drain"},{"do":"uncordon"},{"do":"restart-machine"}`:                "policies[0].steps[2].do: the machine is returned to service before its restart, which is refused then",
		`{"do":"drain"},{"do":"uncordon"},{"do":"drain"},{"do":"restart-machine"}`: "",
	} {
		text := strings.Replace(good, `{"do":"stop-job","grace":"4h"}`, steps, 1)
		_, err := policy.Read([]byte(text))
		require.ErrorContains(t, err, "restarts of machines are off", steps)
		text = strings.Replace(text, `"keep"`, `"restartMachines":true,"keep"`, 1)
		_, err = policy.Read([]byte(text))
		require.ErrorContains(t, err, `limits.restartsPerHour: the policy "idle" would drain machines and never restart them`, steps)
		_, err = policy.Read([]byte(strings.Replace(text, `"stopsPerHour"`, `"restartsPerHour":1,"stopsPerHour"`, 1)))
		if want == "" {
			require.NoError(t, err)
		} else {
			require.ErrorContains(t, err, want)
		}
	}
}

// A step that follows a failed one is an alternative for it.
func TestStepsThatFollowFailures(t *testing.T) {
	for steps, want := range map[string]string{
		`{"do":"drain"},{"do":"reset-gpu"},{"do":"restart-machine","ifFailed":true},{"do":"uncordon"}`: "",
		`{"do":"drain","ifFailed":true}`:                                          "policies[0].steps[0].ifFailed: no step is before it",
		`{"do":"stop-job"},{"do":"stop-job","ifFailed":true}`:                     "policies[0].steps[1].ifFailed: steps for jobs have no alternative",
		`{"do":"drain"},{"do":"reset-gpu"},{"do":"uncordon","ifFailed":true}`:     "policies[0].steps[2].ifFailed: it would return a machine to service whose repair has failed",
		`{"do":"cordon"},{"do":"drain","ifFailed":true},{"do":"restart-machine"}`: "policies[0].steps[2].do: the machine isn't drained before its restart",
	} {
		text := strings.Replace(good, `{"do":"stop-job","grace":"4h"}`, steps, 1)
		text = strings.Replace(text, `"keep"`, `"restartMachines":true,"keep"`, 1)
		_, err := policy.Read([]byte(strings.Replace(text, `"stopsPerHour"`, `"restartsPerHour":1,"stopsPerHour"`, 1)))
		if want == "" {
			require.NoError(t, err)
		} else {
			require.ErrorContains(t, err, want)
		}
	}
	p := policy.Policy{Steps: []policy.Step{{Do: v1.OperationDrain}, {Do: v1.OperationResetGPU}, {Do: v1.OperationRestartMachine, IfFailed: true}, {Do: v1.OperationUncordon}}}
	for _, c := range []struct {
		at    int
		ended v1.Phase
		next  int
	}{
		{0, v1.PhaseSucceeded, 1}, {0, v1.PhaseFailed, -1}, {1, v1.PhaseSucceeded, 3}, {1, v1.PhaseFailed, 2}, {1, v1.PhaseRefused, -1},
		{1, v1.PhaseCanceled, -1}, {1, v1.PhaseExpired, -1}, {1, v1.PhaseActing, -1}, {2, v1.PhaseSucceeded, 3}, {2, v1.PhaseFailed, -1}, {3, v1.PhaseSucceeded, -1}, {3, v1.PhaseFailed, -1}, {9, v1.PhaseFailed, -1},
	} {
		next, ok := p.Next(c.at, c.ended)
		require.Equal(t, c.next >= 0, ok, c)
		if ok {
			require.Equal(t, c.next, next, c)
		}
	}
}

// A requeue must be the only step of its policy, because another step for jobs would affect the attempt that the requeue starts.
func TestPoliciesThatRequeueJobs(t *testing.T) {
	for steps, want := range map[string]string{
		`{"do":"requeue-job"}`:                      "",
		`{"do":"requeue-job","grace":"10m"}`:        "",
		`{"do":"requeue-job"},{"do":"stop-job"}`:    "policies[0].steps[1].do: requeue-job is the only step of its policy",
		`{"do":"stop-job"},{"do":"requeue-job"}`:    "policies[0].steps[1].do: requeue-job is the only step of its policy",
		`{"do":"requeue-job"},{"do":"drain"}`:       "policies[0].steps[1].do: drain acts on another target",
		`{"do":"reset-gpu"},{"do":"requeue-job"}`:   "policies[0].steps[1].do: requeue-job acts on another target",
		`{"do":"requeue-job"},{"do":"requeue-job"}`: "policies[0].steps[1].do: requeue-job is the only step of its policy",
		`{"do":"requeue-job","grace":"169h"}`:       "policies[0].steps[0].grace",
	} {
		c, err := policy.Read([]byte(strings.Replace(good, `{"do":"stop-job","grace":"4h"}`, steps, 1)))
		if want == "" {
			require.NoError(t, err)
			require.True(t, c.Policies[0].ForJobs())
		} else {
			require.ErrorContains(t, err, want)
		}
	}
	for field, want := range map[string]string{"requeuesPerHour": "-1", "requeuesPerHourPerVirtualCluster": "-1", "requeuesPerJob": "11"} {
		_, err := policy.Read([]byte(strings.Replace(good, `"stopsPerHour":1`, `"`+field+`":`+want, 1)))
		require.ErrorContains(t, err, "limits."+field)
	}
}

// Only a policy that makes dry runs of stop-job may notify owners, because other policies stop no jobs, or notify owners in any case.
func TestPoliciesThatNotifyOwners(t *testing.T) {
	for _, test := range []struct{ with, steps, want string }{
		{`"dryRun":true,"notifyOwners":true,`, `{"do":"stop-job","grace":"4h"}`, ""},
		{`"notifyOwners":true,`, `{"do":"stop-job","grace":"4h"}`, "policies[0].notifyOwners: the policy stops jobs, and their owners get a notice in any case"},
		{`"dryRun":true,"notifyOwners":true,`, `{"do":"requeue-job"}`, "policies[0].notifyOwners: the policy stops no jobs"},
		{`"dryRun":true,"notifyOwners":true,`, `{"do":"cordon"}`, "policies[0].notifyOwners: the policy stops no jobs"},
	} {
		text := strings.Replace(good, `{"do":"stop-job","grace":"4h"}`, test.steps, 1)
		_, err := policy.Read([]byte(strings.Replace(text, `"name":"idle"`, test.with+`"name":"idle"`, 1)))
		if test.want == "" {
			require.NoError(t, err)
		} else {
			require.ErrorContains(t, err, test.want)
		}
	}
}

func FuzzOneLine(f *testing.F) {
	f.Add("a\nb", 10)
	f.Add("\xff\x00é…", 3)
	f.Add(strings.Repeat("é", 300), 500)
	f.Fuzz(func(t *testing.T, text string, most int) {
		most = 3 + (most%1000+1000)%1000
		got := policy.OneLine(text, most)
		if len(got) > most || !utf8.ValidString(got) || strings.ContainsAny(got, "\n\r\x00\x1b") {
			t.Fatalf("%q", got)
		}
	})
}

func FuzzRead(f *testing.F) {
	f.Add([]byte(good))
	f.Add([]byte(`{"policies":[{}]}`))
	f.Fuzz(func(_ *testing.T, data []byte) {
		if c, err := policy.Read(data); err == nil {
			for i := range c.Policies {
				c.Policies[i].Applies(alert("a=b"))
				c.Policies[i].ForJobs()
			}
		}
	})
}
