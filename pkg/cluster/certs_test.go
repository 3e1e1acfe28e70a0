package cluster

import (
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
)

func (l *lab) renewCertificates(limit ...string) *outcome {
	l.t.Helper()
	o, events := l.writing(), &sink{}
	o.Sink, o.Limit = events, limit
	return &outcome{err: RenewCertificates(l.t.Context(), l.spec(), o, 90), events: events.events}
}

func TestCertificatesAreRenewedOnOneMasterAfterTheOther(t *testing.T) {
	l := newLab(t, 2, 1)
	require.ErrorContains(t, l.renewCertificates().err, "it is no master of the cluster yet")
	l.made()
	for _, name := range []string{"m1", "m2"} {
		l.host(name).write(renewScript, "[ \"$1\" = 90 ] || exit 9\necho 'renewed apiserver: it had 30 days left'\necho restarted kube-apiserver\necho ran >\"$PAICTL_ROOT/renewed\"\n")
	}
	o := l.renewCertificates()
	require.NoError(t, o.err, "%s", l.story(o))
	var changes []Change
	for _, e := range o.events {
		if e.Kind == EventChanged {
			changes = append(changes, *e.Change)
		}
	}
	assert.Equal(t, "m1 certs renew certificate apiserver it had 30 days left\nm1 certs restart static pod kube-apiserver\n"+
		"m2 certs renew certificate apiserver it had 30 days left\nm2 certs restart static pod kube-apiserver\n", lines(changes))
	assert.Less(t, o.at(EventPhaseDone, "m1", phaseCerts), o.at(EventPhaseStarted, "m2", phaseCerts))

	l.host("m1").write(renewScript, "echo 'the API server does not come up' >&2\nexit 1\n")
	l.host("m2").remove("/renewed")
	o = l.renewCertificates()
	require.ErrorContains(t, o.err, "renew the certificates of m1")
	require.ErrorContains(t, o.err, "the API server does not come up")
	assert.False(t, l.has("m2", "/renewed"), "the later ones are left as they are")

	require.NoError(t, l.renewCertificates("m2", "w1").err)
	assert.True(t, l.has("m2", "/renewed"))
	require.ErrorContains(t, l.renewCertificates("w1").err, "none of these machines runs the control plane")
}
