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

// A policy that would apply to every alert, or to more than its expression says, is rejected.
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

// Labels can't make an Action that the API server would reject again and again, because it has no reason or an index that no GPU has.
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

// The end of a policy's dry runs begins the steps for alerts that fire already.
func TestADryRunIsAnotherIncident(t *testing.T) {
	a := &policy.Alert{Labels: map[string]string{"alertname": "Xid"}}
	require.NotEqual(t, (&policy.Policy{Name: "p"}).Key(a), (&policy.Policy{Name: "p", DryRun: true}).Key(a))
}
