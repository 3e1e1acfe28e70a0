package services

import (
	"context"
	"errors"
	"testing"
	"testing/synctest"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/openpai/paictl/pkg/hint"
	"github.com/openpai/paictl/pkg/services/facts"
	"github.com/openpai/paictl/pkg/services/release"
)

func started(t *testing.T) *lab {
	t.Helper()
	l := newLab(t)
	l.configure("", "alerts: {password: s3cr3t-word}\n")
	require.NoError(t, l.start())
	l.releases.forget()
	return l
}

func (l *lab) stop(only ...string) error { return l.Stop(l.t.Context(), l.options(only...)) }

func TestServicesStopBeforeThoseThatTheyRequire(t *testing.T) {
	l := started(t)
	require.NoError(t, l.stop())
	log := l.releases.changes()
	assert.Len(t, log, 5)
	before(t, log, "uninstall grafana", "uninstall prometheus")
	before(t, log, "uninstall prometheus", "uninstall storage")
	before(t, log, "uninstall prometheus", "uninstall alerts")
	left, err := readInventory(t.Context(), l.client)
	require.NoError(t, err)
	assert.Empty(t, left)
	secrets, err := l.client.CoreV1().Secrets("").List(t.Context(), metav1.ListOptions{LabelSelector: labelManagedBy + "=" + manager})
	require.NoError(t, err)
	assert.Empty(t, secrets.Items, "credentials go with the service; the configuration has them")
}

func TestStoppingTwiceIsNoError(t *testing.T) {
	l := started(t)
	require.NoError(t, l.stop())
	require.NoError(t, l.stop())
	assert.Zero(t, l.story.summary().Services)
}

func TestAServiceThatOthersNeedIsNotStoppedFromUnderThem(t *testing.T) {
	l := started(t)
	err := l.stop("prometheus")
	require.ErrorContains(t, err, "grafana runs and requires prometheus")
	assert.Equal(t, "add --with-dependents to stop grafana too", hint.Of(err))
	assert.Empty(t, l.releases.changes())
	r := l.newRun("stop", l.options("storage"))
	runs := func(name string) *target {
		return &target{name: name, requires: []string{"storage"}, release: &release.Release{}}
	}
	all := map[string]*target{"storage": {name: "storage"}, "a": runs("a"), "b": runs("b"), "off": {name: "off", requires: []string{"storage"}}}
	err = r.neededError(all, map[string]*target{"storage": all["storage"]}, "storage")
	require.EqualError(t, err, "a, b run and require storage", "each that is in the way is named")
	assert.Equal(t, "add --with-dependents to stop a, b too", hint.Of(err))

	o := l.options("prometheus")
	o.WithDependents = true
	require.NoError(t, l.Stop(t.Context(), o))
	assert.Equal(t, []string{"uninstall grafana", "uninstall prometheus"}, l.releases.changes())
	assert.Equal(t, "added: it requires prometheus", l.story.of(EventAdded)[0].Message)
	assert.Equal(t, EventRunStarted, l.story.events[0].Kind, "the run's start comes first")
}

func TestWhatIsExceptedKeepsWhatItNeeds(t *testing.T) {
	l := started(t)
	o := l.options()
	o.Except = []string{"grafana"}
	err := l.Stop(t.Context(), o)
	require.ErrorContains(t, err, "grafana runs and requires prometheus")
	assert.Equal(t, "exclude prometheus as well: -x prometheus", hint.Of(err), "grafana was not to be touched")
	o.Except = []string{"grafana", "prometheus", "storage", "alerts"}
	require.NoError(t, l.Stop(t.Context(), o))
	assert.Equal(t, []string{"uninstall node-exporter"}, l.releases.changes())
}

func TestWhatAKilledStopRemovedIsForgottenByTheNext(t *testing.T) {
	for verb, again := range map[string]func(*lab, Options) error{
		"stop":   func(l *lab, o Options) error { return l.Stop(l.t.Context(), o) },
		"delete": func(l *lab, o Options) error { return l.Delete(l.t.Context(), o) },
	} {
		t.Run(verb, func(t *testing.T) {
			l := started(t)
			delete(l.releases.have, "node-exporter") // gone from Helm, and still in the inventory
			require.NoError(t, again(l, l.options("node-exporter")))
			left, err := readInventory(t.Context(), l.client)
			require.NoError(t, err)
			assert.NotContains(t, left, "node-exporter")
			assert.Contains(t, left, "grafana")
			assert.Empty(t, l.releases.changes())
		})
	}
}

func TestWhatTheConfigurationLostIsStoppedToo(t *testing.T) {
	l := started(t)
	l.Load = func(context.Context) (*Desired, error) {
		d := desired(t, "", "")
		fs := testCharts()
		for name := range fs {
			if len(name) > 15 && name[:15] == "charts/grafana/" {
				delete(fs, name)
			}
		}
		d.Catalogue = catalogueOf(t, fs)
		return d, nil
	}
	require.NoError(t, l.stop())
	before(t, l.releases.changes(), "uninstall grafana", "uninstall prometheus")
}

func TestABrokenConfigurationKeepsNobodyFromStopping(t *testing.T) {
	l := started(t)
	l.Load = func(context.Context) (*Desired, error) {
		return nil, errors.New("the configuration has 1 problem\nmore")
	}
	require.NoError(t, l.stop())
	assert.Len(t, l.releases.changes(), 5)
	assert.Equal(t, "the configuration can't be used: the configuration has 1 problem", l.story.of(EventWarning)[0].Message)
}

func TestReleasesOfOthersAreLeftAlone(t *testing.T) {
	l := started(t)
	l.releases.have["theirs"] = release.Release{Name: "theirs", Namespace: "pai-system", Status: facts.StatusDeployed}
	require.NoError(t, l.stop())
	assert.NotContains(t, l.releases.changes(), "uninstall theirs")
	require.ErrorContains(t, l.stop("theirs"), `there is no service "theirs"`)
}

func TestAStopThatFailsKeepsWhatTheServiceNeeds(t *testing.T) {
	l := started(t)
	l.releases.refuse["grafana"] = errors.New("denied")
	err := l.stop()
	var partial *PartialError
	require.ErrorAs(t, err, &partial)
	assert.Equal(t, "1 of 5 services failed to stop: grafana; 3 wait for them: alerts, prometheus, storage", err.Error())
	assert.Equal(t, []string{"uninstall node-exporter"}, l.releases.changes())
}

func podOf(service string) *corev1.Pod {
	return &corev1.Pod{ObjectMeta: metav1.ObjectMeta{Name: service + "-0", Namespace: "pai-system", Labels: map[string]string{labelInstance: service}}}
}

// endingPod creates a pod that is being deleted but hasn't exited yet.
func (l *lab) endingPod(service string) {
	l.t.Helper()
	pod := podOf(service)
	pod.DeletionTimestamp, pod.Finalizers = &metav1.Time{Time: l.Clock()}, []string{"kubelet"}
	_, err := l.client.CoreV1().Pods("pai-system").Create(l.t.Context(), pod, metav1.CreateOptions{})
	require.NoError(l.t, err)
}

func TestAStopWaitsUntilThePodsAreGone(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		l := started(t)
		pods := l.client.CoreV1().Pods("pai-system")
		l.endingPod("grafana")
		time.AfterFunc(20*time.Second, func() {
			assert.NotContains(t, l.releases.changes(), "uninstall prometheus", "grafana's pod still asks it")
			assert.NoError(t, pods.Delete(t.Context(), "grafana-0", metav1.DeleteOptions{}))
		})
		require.NoError(t, l.stop())
		assert.Equal(t, "waits for 1 pod to end", l.story.of(EventProgress)[0].Message)
	})
}

func TestPodsThatStayAreNamed(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		l := started(t)
		l.endingPod("grafana")
		var partial *PartialError
		require.ErrorAs(t, l.stop("grafana"), &partial)
		assert.Equal(t, "pods of grafana are still there after 1m0s: grafana-0", partial.Failed[0].Error)
	})
}

func TestPodsOfAMachineThatIsAwayAreNotWaitedFor(t *testing.T) {
	for name, tc := range map[string]struct {
		ready corev1.ConditionStatus
		gone  bool
	}{
		"a machine that is away":               {corev1.ConditionUnknown, true},
		"a machine that is there, and is slow": {corev1.ConditionTrue, false},
	} {
		t.Run(name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				l := started(t)
				node, err := l.client.CoreV1().Nodes().Create(t.Context(), &corev1.Node{
					ObjectMeta: metav1.ObjectMeta{Name: "off-1"},
					Status:     corev1.NodeStatus{Conditions: []corev1.NodeCondition{{Type: corev1.NodeReady, Status: tc.ready}}},
				}, metav1.CreateOptions{})
				require.NoError(t, err)
				pod := podOf("grafana")
				pod.Spec.NodeName = node.Name
				pod.DeletionTimestamp = &metav1.Time{Time: l.Clock().Add(10 * time.Second)}
				pod.Finalizers = []string{"kubelet"}
				_, err = l.client.CoreV1().Pods("pai-system").Create(t.Context(), pod, metav1.CreateOptions{})
				require.NoError(t, err)
				err = l.stop("grafana")
				if !tc.gone {
					require.Error(t, err)
					return
				}
				require.NoError(t, err)
				assert.Equal(t, "1 pod of grafana can't be stopped, because their machines don't answer: off-1", l.story.of(EventWarning)[0].Message)
			})
		})
	}
}

func TestADryStopTellsAndChangesNothing(t *testing.T) {
	l := started(t)
	l.client.ClearActions()
	o := l.options()
	o.DryRun = true
	require.NoError(t, l.Stop(t.Context(), o))
	assert.Empty(t, l.releases.changes())
	assert.Empty(t, l.writes())
	assert.Len(t, l.story.of(EventPlanned), 5)
}
