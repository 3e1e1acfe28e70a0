package cluster

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/openpai/paictl/pkg/cluster/engine"
	"github.com/openpai/paictl/pkg/cluster/phases"
	"github.com/openpai/paictl/pkg/cluster/preflight"
	"github.com/openpai/paictl/pkg/ssh"
	"github.com/openpai/paictl/pkg/ssh/sshtest"
	"github.com/openpai/paictl/pkg/version"
)

const nextRelease = "v1.37.0"

// upgrade runs "cluster upgrade" like a new process of paictl.
func (l *lab) upgrade(ctx context.Context, up UpgradeOptions, edit ...func(*engine.Options)) *outcome {
	l.t.Helper()
	so := sshtest.Options(l.t, l.servers()...)
	if c := l.crash.Load(); c != nil {
		so.NetDial = c.dial
	}
	client, events := ssh.NewClient(so), &sink{}
	defer func() { _ = client.Close() }()
	o := engine.Options{Dialer: client, Sink: events, Clock: time.Now, Owner: "tester", Command: "paictl cluster upgrade", StepTimeout: 5 * time.Minute}
	for _, f := range edit {
		f(&o)
	}
	up.look = time.Millisecond
	cs, err := Upgrade(ctx, l.spec(), o, up)
	return &outcome{changes: cs, err: err, events: events.events}
}

// upgradeLab returns a cluster whose configuration and bundle require the next minor release.
func upgradeLab(t *testing.T, masters, workers int) *lab {
	t.Helper()
	l := newLab(t, masters, workers)
	l.made()
	l.release(nextRelease, "")
	l.forgetCalls()
	return l
}

func (h *fakeHost) runs() (kubelet, apiServer string) {
	release := func(text, before string) string {
		_, after, _ := strings.Cut(text, before)
		v, _, _ := strings.Cut(after, "\n")
		return v
	}
	return release(h.read("/usr/local/bin/kubelet"), "echo Kubernetes "), release(h.read("/etc/kubernetes/manifests/kube-apiserver.yaml"), "kube-apiserver:")
}

func (l *lab) file(path, text string) {
	l.t.Helper()
	require.NoError(l.t, os.WriteFile(filepath.Join(l.cluster, path), []byte(text), 0o644))
}

func TestAnUpgradeGoesFromTheControlPlaneToOneMachineAfterTheOther(t *testing.T) {
	t.Parallel()
	l := upgradeLab(t, 2, 1)
	before := l.bytes()
	dry := l.upgrade(t.Context(), UpgradeOptions{}, func(o *engine.Options) { o.DryRun = true })
	require.NoError(t, dry.err, "%s", l.story(dry))
	assert.Equal(t, before, l.bytes(), "a dry run")

	began := 0
	o := l.upgrade(t.Context(), UpgradeOptions{Begin: func() error { began++; return nil }})
	require.NoError(t, o.err, "%s", l.story(o))
	assert.Equal(t, 1, began)
	assert.Equal(t, lines(dry.changes), lines(o.changes), "what was shown was done")
	for _, h := range l.hosts {
		kubelet, api := h.runs()
		assert.Equal(t, nextRelease, kubelet, h.name)
		if strings.HasPrefix(h.name, "m") {
			assert.Equal(t, nextRelease, api, h.name)
		}
		assert.Contains(t, strings.Join(h.calls(), "\n"), "kubeadm upgrade node phase kubelet-config\nkubeadm upgrade node phase post-upgrade", h.name)
	}
	assert.Empty(t, l.cordoned())

	last := -1
	follow := func(what string, at int) {
		t.Helper()
		require.Greater(t, at, last, what)
		last = at
	}
	for _, h := range []string{"m1", "m2", "w1"} {
		last = max(last, o.at(engine.EventPhaseDone, h, phases.PhaseImages))
	}
	for _, h := range []string{"m1", "m2"} {
		follow(h+" begins", o.at(engine.EventPhaseStarted, h, engine.PhaseInit))
		follow(h+" ends", o.at(engine.EventPhaseDone, h, engine.PhaseInit))
	}
	for _, h := range []string{"m1", "m2", "w1"} {
		follow(h+" is emptied", o.at(engine.EventPhaseStarted, h, phaseDrain))
		follow(h+" has its kubelet", o.at(engine.EventPhaseDone, h, phases.PhaseKubelet))
		follow(h+" is back", o.at(engine.EventPhaseDone, h, phaseUncordon))
	}
	said := strings.Join(l.host("m1").calls(), "\n")
	assert.Contains(t, said, "kubectl snapshot save\nkubeadm init phase etcd local")
	assert.Contains(t, said, "kubeadm init phase control-plane apiserver\nkubeadm init phase control-plane all")
	assert.FileExists(t, l.host("m1").root+engine.StateDir+"/etcd-before-upgrade.db")
	assert.Less(t, strings.Index(said, "kubeadm init phase upload-config"), strings.Index(said, "kubeadm upgrade apply phase bootstrap-token "+nextRelease))

	l.forgetCalls()
	o = l.upgrade(t.Context(), UpgradeOptions{})
	require.NoError(t, o.err, "%s", l.story(o))
	assert.Empty(t, lines(o.changes), "a second run")
	assert.Empty(t, lines(l.mustUp().changes), "cluster up has nothing to do")
	assert.Empty(t, l.onNodes())
}

func TestAnUpgradeIsRefusedBeforeAnythingIsChanged(t *testing.T) {
	t.Parallel()
	day := UpgradeOptions{MaxBackupAge: 24 * time.Hour}
	note := func(l *lab, text string) {
		old, err := os.ReadFile(filepath.Join(l.cluster, "objects/paictl"))
		require.NoError(t, err)
		l.file("objects/paictl", string(old)+"backup\t"+text+"\n")
	}
	const deprecated = `apiserver_requested_deprecated_apis{group="flowcontrol.apiserver.k8s.io",removed_release="1.%d",resource="flowschemas",subresource="",version="v1beta3"} 1` + "\n"
	etcd := "/etc/kubernetes/manifests/etcd.yaml"
	for _, c := range []struct {
		name, release string
		want          []string
		do            func(l *lab)
	}{
		{name: "a minor release skipped", release: "v1.38.0", want: []string{"its API server has Kubernetes " + version.Kubernetes + ", the bundle v1.38.0: an upgrade may not skip a minor release"}},
		{name: "an earlier minor release", release: "v1.35.9", want: []string{"its kubelet has Kubernetes " + version.Kubernetes + ", the bundle v1.35.9: Kubernetes can't go back to an earlier minor release, since etcd holds data that the earlier one can't read"}},
		{name: "much at once", want: []string{
			"no backup of the cluster was ever made",
			"flowschemas (flowcontrol.apiserver.k8s.io/v1beta3) is in use, and Kubernetes 1.37 no longer has it",
			"it runs etcd 3.8.0, and etcd 3.7.0 of the bundle can't read its data",
			"CoreDNS v1.13.0 runs, and kubeadm can't go back to v1.12.1 of the bundle",
			"the node is not Ready",
		}, do: func(l *lab) {
			l.file("deprecated", fmt.Sprintf(deprecated, 37))
			l.host("m1").write(etcd, strings.ReplaceAll(l.host("m1").read(etcd), "etcd:3.6.1-0", "etcd:3.8.0-0"))
			l.file("coredns", "registry.k8s.io/coredns/coredns:v1.13.0")
			l.file("nodes/m2/notready", "")
		}},
		{name: "an old backup", want: []string{"the last backup of the cluster is 25h0m0s old"}, do: func(l *lab) { note(l, time.Now().Add(-25*time.Hour).Format(time.RFC3339)) }},
		{name: "a member of etcd that is none", want: []string{"etcd doesn't have the machine as a member", "when the last backup was made can't be read"}, do: func(l *lab) {
			note(l, "yesterday")
			l.file("members/m2", "1234, started, m9, https://10.9.9.9:2380, https://10.9.9.9:2379, false\n")
		}},
		{name: "an API server that is down", want: []string{"its API server doesn't answer"}, do: func(l *lab) { l.host("m2").write("/.fake/fail/api", "") }},
		{name: "a machine of the control plane that is away", want: []string{"the machine doesn't answer; an upgrade needs all machines of the control plane"}, do: func(l *lab) { l.host("m2").server.Close() }},
	} {
		t.Run(c.name, func(t *testing.T) {
			l := newLab(t, 2, 1)
			l.made()
			l.release(cmp.Or(c.release, nextRelease), "")
			if c.do != nil {
				c.do(l)
			}
			before := l.bytes()
			options := day
			options.Begin = func() error { return errors.New("it has begun") }
			o := l.upgrade(t.Context(), options)
			var refused *engine.PreflightError
			require.ErrorAs(t, o.err, &refused, "%s", l.story(o))
			for _, want := range c.want {
				assert.True(t, slices.ContainsFunc(refused.Findings, func(f preflight.Finding) bool {
					return f.Severity == preflight.SeverityError && strings.Contains(f.Message, want) && f.Remedy != ""
				}), "%s: %v", want, refused.Findings)
			}
			assert.Equal(t, before, l.bytes())
		})
	}
	t.Run("what is allowed", func(t *testing.T) {
		l := upgradeLab(t, 1, 1)
		note(l, time.Now().Add(-23*time.Hour).Format(time.RFC3339))
		l.file("deprecated", fmt.Sprintf(deprecated, 38))
		begun := errors.New("it has begun")
		day.Begin = func() error { return begun }
		require.ErrorIs(t, l.upgrade(t.Context(), day).err, begun)
		l.file("deprecated", fmt.Sprintf(deprecated, 36))
		require.ErrorAs(t, l.upgrade(t.Context(), day).err, new(*engine.PreflightError))
		day.RemovedAPIs = true
		o := l.upgrade(t.Context(), day)
		require.ErrorIs(t, o.err, begun)
		assert.True(t, slices.ContainsFunc(o.events, func(e engine.Event) bool {
			return e.Kind == engine.EventWarning && strings.Contains(e.Message, "flowschemas")
		}), "it is said")
	})
}

func TestAPatchReleaseCanBeTakenBack(t *testing.T) {
	t.Parallel()
	const earlier = "v1.36.1"
	l := upgradeLab(t, 1, 1)
	l.release(earlier, "")
	before := l.bytes()
	o := l.upgrade(t.Context(), UpgradeOptions{})
	var refused *engine.PreflightError // an operator with an old folder would downgrade the whole cluster
	require.ErrorAs(t, o.err, &refused)
	assert.Contains(t, refused.Findings[0].Message, "the bundle "+earlier+": the cluster would go back to an earlier release")
	assert.Contains(t, refused.Findings[0].Remedy, "--to "+earlier)
	assert.Equal(t, before, l.bytes(), "nothing was changed")

	o = l.upgrade(t.Context(), UpgradeOptions{Back: true})
	require.NoError(t, o.err, "%s", l.story(o))
	kubelet, _ := l.host("w1").runs()
	assert.Equal(t, earlier, kubelet)
}

func TestAControlPlaneThatDoesNotComeUpIsPutBackAndNothingFollows(t *testing.T) {
	t.Parallel()
	l := upgradeLab(t, 2, 1)
	good := l.host("m2").read("/etc/kubernetes/manifests/kube-apiserver.yaml")
	bad := l.host("m2").root + "/.fake/bad/kube-apiserver"
	require.NoError(t, os.MkdirAll(filepath.Dir(bad), 0o755))
	require.NoError(t, os.WriteFile(bad, []byte(engine.Hash([]byte(good))[:32]), 0o600))
	o := l.upgrade(t.Context(), UpgradeOptions{})
	got := failures(t, o, 3)
	require.Len(t, got, 3, "%s", l.story(o))
	assert.Contains(t, got["m2"].Error, "kube-apiserver did not come up with the new settings, so the earlier ones are back in force (except for etcd, which stays as it is now)")
	assert.Contains(t, l.host("m2").read("/etc/kubernetes/manifests/etcd.yaml"), "etcd:3.7.0-0", "it has written what the earlier one can't read")
	assert.Equal(t, good, l.host("m2").read("/etc/kubernetes/manifests/kube-apiserver.yaml"))
	for _, h := range []string{"m1", "w1"} {
		assert.True(t, got[h].Untouched, h)
		assert.Equal(t, "not upgraded: the upgrade of m2 has failed", got[h].Error)
	}
	for _, h := range l.hosts {
		kubelet, _ := h.runs()
		assert.Equal(t, version.Kubernetes, kubelet, h.name)
	}
	assert.Empty(t, l.cordoned())

	up := l.up(t.Context())
	require.ErrorAs(t, up.err, new(*engine.PreflightError))
	assert.Contains(t, l.story(up), "to bring the cluster to "+nextRelease+": paictl cluster upgrade")

	require.NoError(t, os.Remove(bad))
	o = l.upgrade(t.Context(), UpgradeOptions{})
	require.NoError(t, o.err, "%s", l.story(o))
	assert.Empty(t, lines(l.mustUp().changes))
}

func TestAWorkerThatFailsStopsTheRollout(t *testing.T) {
	t.Parallel()
	for most, reached := range map[int][]string{1: nil, 2: {"w2"}} {
		l := upgradeLab(t, 1, 2)
		l.host("w1").write("/.fake/fail/kubeadm-upgrade", "couldn't retrieve it")
		o := l.upgrade(t.Context(), UpgradeOptions{MaxFailures: most})
		require.ErrorAs(t, o.err, new(*engine.PartialError), "%s", l.story(o))
		assert.Contains(t, l.story(o), "the machine stays cordoned until this command succeeds")
		assert.Equal(t, []string{"w1"}, l.cordoned())
		var done []string
		if kubelet, _ := l.host("w2").runs(); kubelet == nextRelease {
			done = append(done, "w2")
		}
		assert.Equal(t, reached, done, "up to %d may fail", most)
		if most > 1 {
			continue
		}
		l.host("w1").remove("/.fake/fail/kubeadm-upgrade")
		o = l.upgrade(t.Context(), UpgradeOptions{})
		require.NoError(t, o.err, "%s", l.story(o))
		assert.Empty(t, l.cordoned())
		assert.Empty(t, lines(l.mustUp().changes))
	}
}

func TestJobsOnAMachine(t *testing.T) {
	t.Parallel()
	const tasks = "pai-jobs alice~train\npai-jobs alice~train\npai-jobs bob~eval\n"
	prepare := func(t *testing.T) *lab {
		l := upgradeLab(t, 1, 2)
		l.file("nodes/w1/tasks", tasks)
		return l
	}
	order := func(o *outcome) []string {
		var out []string
		for _, e := range o.events {
			if e.Kind == engine.EventPhaseDone && e.Phase == phases.PhaseKubelet {
				out = append(out, e.Host)
			}
		}
		return out
	}
	t.Run("are waited for, and machines without jobs go first", func(t *testing.T) {
		l := prepare(t)
		l.file("nodes/w1/ending", "")
		o := l.upgrade(t.Context(), UpgradeOptions{})
		require.NoError(t, o.err, "%s", l.story(o))
		assert.Equal(t, []string{"m1", "w2", "w1"}, order(o))
	})
	t.Run("that don't end in time leave their machine as it is", func(t *testing.T) {
		l := prepare(t)
		o := l.upgrade(t.Context(), UpgradeOptions{MaxWait: 200 * time.Millisecond})
		got := failures(t, o, 3)
		require.Len(t, got, 1)
		assert.True(t, got["w1"].Untouched)
		assert.Equal(t, "not upgraded: after 200ms there still runs pai-jobs/alice~train, pai-jobs/bob~eval", got["w1"].Error)
		assert.NotContains(t, got["w1"].Hint, "cordoned")
		assert.Empty(t, l.cordoned())
		assert.Equal(t, []string{"m1", "w2"}, order(o), "it counts for no failure")
		kubelet, _ := l.host("w1").runs()
		assert.Equal(t, version.Kubernetes, kubelet)
	})
	t.Run("begin again elsewhere", func(t *testing.T) {
		l := prepare(t)
		o := l.upgrade(t.Context(), UpgradeOptions{Jobs: JobsRequeue, AtOnce: 2})
		require.NoError(t, o.err, "%s", l.story(o))
		assert.Contains(t, l.onNodes(), "drain w1")
	})
	t.Run("are stopped", func(t *testing.T) {
		l := prepare(t)
		o := l.upgrade(t.Context(), UpgradeOptions{Jobs: JobsStop})
		require.NoError(t, o.err, "%s", l.story(o))
		said := strings.Join(l.host("m1").calls(), "\n")
		assert.Equal(t, 1, strings.Count(said, "stop pai-jobs/alice~train"))
		assert.Equal(t, 1, strings.Count(said, "stop pai-jobs/bob~eval"))
	})
}

var oldMark = regexp.MustCompile(`\\n` + regexp.QuoteMeta(upgradeMark) + `=[0-9]+`)

func TestAnUpgradeThatIsKilledIsCompletedByTheNext(t *testing.T) {
	t.Parallel()
	var want string
	cutOff(t, 3, 3, func(t *testing.T) story {
		l := upgradeLab(t, 1, 1)
		return story{
			lab: l, run: func() *outcome { return l.upgrade(t.Context(), UpgradeOptions{}) }, between: l.rest,
			check: func(c *crash, _ *outcome) {
				// The mark has no meaning on a node that isn't cordoned. It remains if the run ended between the two steps.
				state := oldMark.ReplaceAllString(strings.Join(l.state(), "\n"), "")
				if c == nil {
					want = state
				}
				assert.Empty(t, l.cordoned())
				assert.Empty(t, engine.Unified("state", []byte(state), []byte(want)))
				assert.Empty(t, lines(l.mustUp().changes))
			},
		}
	})
}
