package policy_test

import (
	"fmt"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/openpai/paictl/pkg/alerthandler/policy"
)

func read(alerts string) (*policy.Config, error) {
	return policy.Read(fmt.Appendf(nil, `{"limits":{},"drainTimeout":"30m","keep":"24h","policies":[{"name":"p","alerts":%s,"steps":[{"do":"cordon"}]}]}`, alerts))
}

// A policy is rejected if it would apply to every alert, or to more alerts than its expression seems to select.
func TestExpressionsThatMatchTooMuch(t *testing.T) {
	for alerts, want := range map[string]string{
		`{}`:                             "would apply to every alert",
		`{"alertname":".*"}`:             "would apply to every alert",
		`{"severity":"","team":"a|"}`:    "would apply to every alert",
		`{"alertname":"Xid)|(?:Memory"}`: "is not a regular expression",
	} {
		_, err := read(alerts)
		require.ErrorContains(t, err, want, alerts)
	}
	c, err := read(`{"alertname":"Xid","job_name":".*"}`)
	require.NoError(t, err)
	require.True(t, c.Policies[0].Applies(&policy.Alert{Labels: map[string]string{"alertname": "Xid"}}))
	require.False(t, c.Policies[0].Applies(&policy.Alert{Labels: map[string]string{"alertname": "Xid2"}}))
}

// The API server would reject an Action with an empty reason or an invalid GPU index again and again. Labels can't cause such an Action.
func TestHostileLabels(t *testing.T) {
	for _, summary := range []string{"", " \n\t", "\x00\x01", strings.Repeat("ä\x1b", 200_000)} {
		reason := (&policy.Alert{Labels: map[string]string{"alertname": "Xid"}, Annotations: map[string]string{"summary": summary}}).Reason()
		require.NotEmpty(t, reason, "%.10q", summary)
		require.LessOrEqual(t, len(reason), 500)
	}
	for label, valid := range map[string]bool{"0": true, "1023": true, "1024": false, "-1": false, "GPU-1": false, strings.Repeat("9", 200_000): false} {
		require.Equal(t, valid, (&policy.Alert{Labels: map[string]string{"gpu": label}}).Target().GPU != nil, "%.10s", label)
	}
}

// When a policy stops making dry runs, its steps also begin for alerts that already fire.
func TestADryRunIsAnotherIncident(t *testing.T) {
	a := &policy.Alert{Labels: map[string]string{"alertname": "Xid"}}
	require.NotEqual(t, (&policy.Policy{Name: "p"}).Key(a), (&policy.Policy{Name: "p", DryRun: true}).Key(a))
}
