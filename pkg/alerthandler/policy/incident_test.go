package policy_test

import (
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/openpai/paictl/pkg/alerthandler/policy"
)

// A policy and the labels identify an alert. The start time doesn't identify it.
func TestKeys(t *testing.T) {
	p, q := &policy.Policy{Name: "p"}, &policy.Policy{Name: "q"}
	one := alert("a=1 b=2")
	require.Equal(t, p.Key(one), p.Key(alert("b=2 a=1")))
	later, resolved := alert("a=1 b=2"), alert("a=1 b=2")
	later.StartsAt = time.Unix(2, 0)
	resolved.Status = "resolved"
	require.Equal(t, p.Key(one), p.Key(later))
	require.Equal(t, p.Key(one), p.Key(resolved))
	seen := map[string]bool{p.Key(one): true, q.Key(one): true, p.Key(alert("a=1")): true, p.Key(alert(`a=1"b="2`)): true}
	require.Len(t, seen, 4)
}

func TestNamesOfIncidents(t *testing.T) {
	i := policy.Incident{Key: "0c4f5d2a9e1b7766", Number: 12}
	got, ok := policy.ParseIncident(i.String())
	require.True(t, ok)
	require.Equal(t, i, got)
	require.Equal(t, "p-0c4f5d2a9e1b7766-12-2", (&policy.Policy{Name: "p"}).ActionName(i.String(), 1))
	for _, text := range []string{"", "-", "a", "a-", "a-0", "a--1", "-1", "a-x", "a-1-2"} {
		_, ok := policy.ParseIncident(text)
		require.False(t, ok, text)
	}
}

// All messages about one firing of an alert belong to one incident, even if they arrive in a different order.
func TestMessagesAndIncidents(t *testing.T) {
	at := func(minutes int) time.Time { return time.Unix(0, 0).UTC().Add(time.Duration(minutes) * time.Minute) }
	fires := policy.Incident{Started: at(0), Last: at(60)}
	ended := policy.Incident{Started: at(0), Last: at(91), Ended: at(90)}
	for _, c := range []struct {
		name       string
		i          policy.Incident
		start, now int
		want       policy.Part
	}{
		{"a repeated message", fires, 0, 120, policy.Same},
		{"Prometheus restarted", fires, 100, 120, policy.Same},
		{"an alert that was silenced for a day", fires, 0, 24 * 60, policy.Same},
		{"the end was lost", fires, 300, 310, policy.Other},
		{"a message that was delayed", ended, 0, 92, policy.Late},
		{"another Prometheus has seen no end", ended, 0, 120, policy.Other},
		{"it fires again", ended, 95, 96, policy.Other},
		{"it fires again at once", ended, 90, 91, policy.Other},
	} {
		require.Equal(t, c.want, c.i.Part(&policy.Alert{StartsAt: at(c.start)}, at(c.now)), c.name)
	}

	end := func(minutes int) *policy.Alert { return &policy.Alert{Status: "resolved", EndsAt: at(minutes)} }
	require.True(t, fires.Ends(end(61), at(62)))
	require.True(t, fires.Ends(&policy.Alert{Status: "resolved"}, at(62)))
	require.False(t, ended.Ends(end(100), at(101)), "it has ended already")
	second := ended.Next(&policy.Alert{StartsAt: at(95)}, at(96))
	require.Equal(t, policy.Incident{Number: 1, Started: at(95), Last: at(96)}, second)
	require.False(t, second.Ends(end(90), at(97)), "the end of the first incident is late")
	require.True(t, second.Ends(end(96), at(97)))
	unseen := ended.Next(&policy.Alert{StartsAt: at(0)}, at(120))
	require.False(t, unseen.Ends(end(90), at(121)), "the same end is sent again")
}
