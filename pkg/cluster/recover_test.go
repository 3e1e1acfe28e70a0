package cluster

import (
	"os"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/openpai/paictl/pkg/cluster/engine"
	"github.com/openpai/paictl/pkg/hint"
	"github.com/openpai/paictl/pkg/ssh"
)

// lost returns a cluster of three masters. Two of them have lost their disks.
func lost(t *testing.T) *lab {
	t.Helper()
	l := newLab(t, 3, 1)
	l.made()
	l.keep()
	l.host("m1").wipe()
	l.host("m2").wipe()
	l.forgetCalls()
	return l
}

func (l *lab) recover(host string, edit ...func(*labOptions)) *outcome {
	l.t.Helper()
	return l.up(l.t.Context(), func(o *labOptions, _ *ssh.Options) {
		o.recover = &RecoverOptions{FromMember: host}
		for _, f := range edit {
			f(o)
		}
	})
}

func (l *lab) wouldRecover(host string) (string, error) {
	l.t.Helper()
	v, err := PreviewRecover(l.t.Context(), l.spec(), l.options(), RecoverOptions{FromMember: host})
	return v.String(), err
}

func TestOneMemberOfEtcdGoesOnAlone(t *testing.T) {
	t.Parallel()
	l := lost(t)
	require.ErrorContains(t, l.refusedUp(), "quorum")
	before := l.bytes()
	text, err := l.wouldRecover("m3")
	require.NoError(t, err)
	assert.Equal(t, "etcd has lost its quorum. m3 continues alone, with the data that it has (up to revision 100). Changes that it did not receive before are lost.\n"+
		"m1 has no data of etcd; it joins again.\nm2 has no data of etcd; it joins again.", text)
	assert.Equal(t, before, l.bytes(), "nothing was changed")

	o := l.recover("m3")
	require.NoError(t, o.err, "%s", l.story(o))
	assert.True(t, l.kept())
	assert.Equal(t, []string{"m1", "m2", "m3"}, l.members())
	assert.Contains(t, lines(o.changes), "m3 recover run etcd --force-new-cluster it continues alone")
	assert.Contains(t, lines(o.changes), "m1 join run kubeadm join")
	assert.DirExists(t, l.host("m3").root+"/var/lib/paictl/etcd-before-recovery")
	assert.NoDirExists(t, l.host("m3").root+"/var/lib/paictl/recover")
	assert.NotContains(t, l.host("m3").read("/etc/kubernetes/manifests/etcd.yaml"), "force", "the next start takes no one out")
	assert.Empty(t, lines(l.mustUp().changes))

	_, err = l.wouldRecover("m3")
	require.ErrorContains(t, err, "etcd has a quorum, says m1: there is nothing to recover")
}

// refusedUp returns the error of an up that is rejected because etcd has no quorum.
func (l *lab) refusedUp() error {
	l.t.Helper()
	o := l.up(l.t.Context())
	require.Error(l.t, o.err)
	return o.err
}

func TestARecoveryIsRefused(t *testing.T) {
	t.Parallel()
	l := newLab(t, 3, 1)
	l.made()
	for host, says := range map[string]string{
		"m1": "etcd has a quorum, says m1",
		"w1": "w1 is not a machine of the control plane",
		"x1": "x1 is not a machine of the layout",
	} {
		_, err := l.wouldRecover(host)
		require.ErrorContains(t, err, says)
		require.ErrorContains(t, l.recover(host).err, says)
	}
	l.host("m1").wipe()
	l.host("m2").server.Close()
	_, err := l.wouldRecover("m1")
	require.ErrorContains(t, err, "m1 is not a member of the cluster")
	_, err = l.wouldRecover("m2")
	require.ErrorContains(t, err, "m2 does not answer")
	o := l.options()
	o.Limit = []string{"m3"}
	_, err = PreviewRecover(t.Context(), l.spec(), o, RecoverOptions{FromMember: "m3"})
	require.ErrorContains(t, err, "only on the whole cluster")
}

func TestTheMemberWithMoreDataIsNamed(t *testing.T) {
	t.Parallel()
	l := newLab(t, 5, 0)
	l.made()
	for _, name := range []string{"m1", "m2"} {
		l.host(name).wipe()
	}
	l.host("m3").server.Close()
	require.NoError(t, os.RemoveAll(l.host("m3").root+"/var/lib/etcd"))
	l.host("m5").write("/.fake/revision", "120\n")
	_, err := l.wouldRecover("m4")
	require.ErrorContains(t, err, "m5 has more than m4: its data goes up to revision 120, that of m4 up to 100")
	assert.Equal(t, "name m5; to continue with less anyway: --force", hint.Of(err))
	require.ErrorContains(t, l.recover("m4").err, "m5 has more than m4")
	text, err := l.wouldRecover("m5")
	require.NoError(t, err)
	assert.Contains(t, text, "m3 does not answer. Switch it off: if it still runs with others, there would be two clusters.\nm4 joins again, and its own data (up to revision 100) is deleted.")

	o := l.recover("m4", func(o *labOptions) { o.recover.Force = true })
	require.ErrorAs(t, o.err, new(*engine.PartialError), "%s", l.story(o))
	assert.Equal(t, []string{"m1", "m2", "m4", "m5"}, l.members(), "m3 is silent")
}

func TestAnEtcdThatDoesNotGoOnAloneKeepsItsData(t *testing.T) {
	t.Parallel()
	l := lost(t)
	l.host("m3").write("/.fake/fail/etcd-force", "")
	o := l.recover("m3")
	require.ErrorContains(t, o.err, "etcd did not become a single-member cluster; it said: {\"level\":\"fatal\"")
	assert.DirExists(t, l.host("m3").root+"/var/lib/paictl/recover/member")
	require.ErrorContains(t, l.refusedUp(), "a recovery of etcd from m3 was interrupted")
	_, err := l.wouldRecover("m1")
	require.ErrorContains(t, err, "a recovery from m3 was interrupted")
	before := l.host("m3").read("/var/lib/paictl/recover/etcd.yaml")
	o2 := l.writing()
	require.NoError(t, UndoRecovery(t.Context(), l.spec(), o2, "m3"))
	assert.Equal(t, before, l.host("m3").read("/etc/kubernetes/manifests/etcd.yaml"))
	assert.NoDirExists(t, l.host("m3").root+"/var/lib/paictl/recover")
	require.ErrorContains(t, UndoRecovery(t.Context(), l.spec(), o2, "m3"), "no recovery from m3 was interrupted")
	l.host("m3").remove("/.fake/fail/etcd-force")
	require.NoError(t, l.recover("m3").err)
	assert.True(t, l.kept())
	assert.Equal(t, []string{"m1", "m2", "m3"}, l.members())
}

func TestARecoveryThatIsCutOffIsFinishedByTheSameCommand(t *testing.T) {
	t.Parallel()
	cutOff(t, 3, 3, func(t *testing.T) story {
		l := lost(t)
		return story{lab: l, run: func() *outcome { return l.recover("m3") }, check: func(c *crash, again *outcome) {
			if again.err != nil { // etcd was whole again, and up completes the rest
				require.ErrorContains(t, again.err, "etcd has a quorum")
				l.mustUp()
			}
			assert.True(t, l.kept())
			assert.Equal(t, []string{"m1", "m2", "m3"}, l.members())
			assert.Empty(t, lines(l.mustUp().changes))
		}, mayFail: true}
	})
}

func TestAnInterruptedRecoveryIsNotFinishedOnceEtcdHasAQuorumAgain(t *testing.T) {
	t.Parallel()
	l := newLab(t, 3, 0)
	l.made()
	l.host("m3").write("/var/lib/paictl/recover/etcd.yaml", l.host("m3").read("/etc/kubernetes/manifests/etcd.yaml"))
	l.host("m3").remove("/etc/kubernetes/manifests/etcd.yaml")
	_, err := l.wouldRecover("m3")
	require.ErrorContains(t, err, "etcd has a quorum again, says m1: there is nothing to recover")
	assert.Contains(t, hint.Of(err), "--from-member m3 --undo")
	require.ErrorContains(t, l.recover("m3").err, "etcd has a quorum again")
	require.NoError(t, UndoRecovery(t.Context(), l.spec(), l.writing(), "m3"))
	assert.Empty(t, lines(l.mustUp().changes))
}

func TestMastersThatHaveTheirDataMayJustBeStarting(t *testing.T) {
	t.Parallel()
	l := newLab(t, 3, 0)
	l.made()
	for _, name := range []string{"m1", "m2", "m3"} {
		l.host(name).write("/.fake/fail/etcd", "")
	}
	_, err := l.wouldRecover("m1")
	require.ErrorContains(t, err, "3 of 3 masters have their data: etcd can have a quorum")

	one := newLab(t, 1, 0)
	one.made()
	one.host("m1").write("/.fake/fail/etcd", "")
	_, err = one.wouldRecover("m1")
	require.ErrorContains(t, err, "1 of 1 masters have their data")
}
