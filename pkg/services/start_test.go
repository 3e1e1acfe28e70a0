package services

import (
	"context"
	"encoding/json"
	"errors"
	"slices"
	"sync"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	clienttesting "k8s.io/client-go/testing"

	"github.com/openpai/paictl/pkg/config/store"
	"github.com/openpai/paictl/pkg/hint"
	"github.com/openpai/paictl/pkg/kube"
	"github.com/openpai/paictl/pkg/services/facts"
	"github.com/openpai/paictl/pkg/services/ready"
	"github.com/openpai/paictl/pkg/services/release"
)

func before(t *testing.T, list []string, first, second string) {
	t.Helper()
	i, j := slices.Index(list, first), slices.Index(list, second)
	require.GreaterOrEqual(t, i, 0, "%s in %v", first, list)
	require.GreaterOrEqual(t, j, 0, "%s in %v", second, list)
	assert.Less(t, i, j, "%s comes before %s in %v", first, second, list)
}

func TestServicesStartAfterThoseThatTheyRequire(t *testing.T) {
	l := newLab(t)
	require.NoError(t, l.start())
	log := l.releases.changes()
	assert.Len(t, log, 5)
	before(t, log, "installed storage", "installed prometheus")
	before(t, log, "installed alerts", "installed prometheus")
	before(t, log, "installed prometheus", "installed grafana")
	assert.Equal(t, 5, l.story.summary().Services)
	assert.Len(t, l.story.summary().Changed, 5)
	assert.Equal(t, EventRunStarted, l.story.events[0].Kind)
	assert.Equal(t, EventRunDone, l.story.events[len(l.story.events)-1].Kind)
}

func TestIndependentServicesStartAtTheSameTime(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		l := newLab(t)
		var mu sync.Mutex
		now, most := 0, 0
		count := func(n int) {
			mu.Lock()
			defer mu.Unlock()
			now += n
			most = max(most, now)
		}
		l.ready.wait = func(context.Context, string) error {
			count(1)
			time.Sleep(10 * time.Second) // the bubble's time
			count(-1)
			return nil
		}
		began := time.Now()
		require.NoError(t, l.start())
		assert.Equal(t, 3, most, "storage, alerts and node-exporter")
		assert.Equal(t, 30*time.Second, time.Since(began), "three steps deep")
	})
}

func TestNamesSelectServicesAndTellWhatTheyAdd(t *testing.T) {
	l := newLab(t)
	require.NoError(t, l.start("prometheus"))
	assert.Equal(t, []string{"alerts", "prometheus", "storage"}, l.story.services(EventReady))
	assert.Equal(t, []string{"alerts", "storage"}, l.story.services(EventAdded))
	assert.Equal(t, "added: required by prometheus", l.story.of(EventAdded)[0].Message)
}

func TestADisabledServiceIsSkippedAndRefusedByName(t *testing.T) {
	l := newLab(t)
	l.configure("", "node-exporter: {enabled: false}\n")
	require.NoError(t, l.start())
	assert.NotContains(t, l.story.services(EventReady), "node-exporter")
	err := l.start("node-exporter")
	require.ErrorContains(t, err, "node-exporter is disabled")
	assert.Contains(t, hint.Of(err), "enabled: true")
}

func TestASecondStartChangesNothing(t *testing.T) {
	l := newLab(t, &corev1.Node{ObjectMeta: metav1.ObjectMeta{Name: "w1"}})
	l.configure(", username: bob, password: hunter22", "alerts: {password: s3cr3t-word}\n")
	require.NoError(t, l.start())
	l.releases.forget()
	l.client.ClearActions()
	require.NoError(t, l.start())
	assert.Empty(t, l.releases.changes())
	assert.Empty(t, l.writes())
	assert.Zero(t, l.story.summary().Changes)
	assert.Len(t, l.story.of(EventReady), 5)
	for _, e := range l.story.of(EventReady) {
		assert.Equal(t, release.Unchanged, e.Action)
		assert.Equal(t, 1, e.Revision)
	}
}

func TestAChangedValueChangesOneRelease(t *testing.T) {
	l := newLab(t)
	require.NoError(t, l.start())
	l.releases.forget()
	l.configure("", "alerts: {replicas: 2}\n")
	require.NoError(t, l.Restart(t.Context(), l.options()))
	assert.Equal(t, []string{"upgraded alerts"}, l.releases.changes())
	assert.Equal(t, []string{"alerts"}, l.story.summary().Changed)
}

func TestAFailureKeepsBackWhatNeedsItAndNothingElse(t *testing.T) {
	l := newLab(t)
	l.ready.states["alerts"] = ready.State{Pods: 1, Problems: []ready.Problem{
		{Object: "pod/alerts-0", Reason: "Pending", Message: "pending: waits for a volume"},
		{Object: "pod/alerts-0", Reason: "ImagePullBackOff", Message: "image can't be pulled: no such image", Hint: "check the image's name", Final: true},
	}}
	err := l.start()
	var partial *PartialError
	require.ErrorAs(t, err, &partial)
	assert.Equal(t, 3, partial.ExitCode())
	assert.Equal(t, "1 of 5 services failed to start: alerts; 2 wait for them: grafana, prometheus", err.Error())
	assert.Equal(t, []Failed{{Service: "alerts", Error: "pod/alerts-0: image can't be pulled: no such image; pod/alerts-0: pending: waits for a volume", Hint: "check the image's name"}}, partial.Failed)
	assert.Equal(t, "paictl service start -n alerts,grafana,prometheus", partial.Retry)
	assert.Equal(t, []string{"node-exporter", "storage"}, l.story.services(EventReady))
	assert.Equal(t, []string{"grafana", "prometheus"}, l.story.services(EventNotStarted))
	assert.Len(t, l.story.of(EventProblem), 2, "each problem is told once, before the failure")
}

func TestNothingThatSucceedsIsAFailureAndNotPartial(t *testing.T) {
	l := newLab(t)
	l.releases.refuse["node-exporter"] = errors.New("denied")
	err := l.start("node-exporter")
	var partial *PartialError
	require.ErrorAs(t, err, &partial)
	assert.Equal(t, 1, partial.ExitCode())
	assert.Contains(t, partial.Failed[0].Error, "denied")
}

func TestAFailedFirstInstallIsRemovedAfterItsReasonWasTold(t *testing.T) {
	l := newLab(t)
	l.ready.states["storage"] = ready.State{Problems: []ready.Problem{{Object: "pod/s", Reason: "Unschedulable", Message: "no node"}}}
	require.Error(t, l.start("storage"))
	assert.Equal(t, []string{"installed storage", "uninstall storage"}, l.releases.changes())
	kinds := []string{}
	for _, e := range l.story.events {
		kinds = append(kinds, e.Kind)
	}
	before(t, kinds, EventProblem, EventFailed)
	before(t, kinds, EventFailed, EventReverted)
	assert.Equal(t, "removed; volumes stay", l.story.of(EventReverted)[0].Message)
}

func TestAFailedUpgradeGoesBackToTheLastRevision(t *testing.T) {
	l := newLab(t)
	require.NoError(t, l.start("storage"))
	l.configure("", "storage: {replicas: 2}\n")
	l.ready.states["storage"] = ready.State{}
	require.Error(t, l.start("storage"))
	assert.Equal(t, []string{"installed storage", "upgraded storage", "rollback storage to 1"}, l.releases.changes())
	assert.Equal(t, "rolled back to revision 1", l.story.of(EventReverted)[0].Message)
}

func TestAServiceWhoseStateIsUnknownIsNotTakenBack(t *testing.T) {
	l := newLab(t)
	away := hint.Wrap(&ready.UnknownError{Waited: time.Minute, Err: errors.New("connection refused")}, "run it again")
	l.ready.wait = func(context.Context, string) error { return away }
	err := l.start("storage")
	var partial *PartialError
	require.ErrorAs(t, err, &partial)
	assert.Contains(t, partial.Failed[0].Error, "the state is unknown")
	assert.Equal(t, "run it again", partial.Failed[0].Hint)
	l.configure("", "storage: {replicas: 2}\n")
	require.Error(t, l.start("storage"))
	assert.Equal(t, []string{"installed storage", "upgraded storage"}, l.releases.changes())
	assert.Contains(t, l.story.of(EventReverted)[0].Message, "left as it is")
	l.ready.wait = nil
	require.NoError(t, l.start("storage"), "the next run waits for it again")
}

func TestKeepFailedLeavesTheReleaseForAPersonToLookAt(t *testing.T) {
	l := newLab(t)
	l.ready.states["storage"] = ready.State{}
	o := l.options("storage")
	o.KeepFailed = true
	require.Error(t, l.Start(t.Context(), o))
	assert.Equal(t, []string{"installed storage"}, l.releases.changes())
	assert.Contains(t, l.story.of(EventReverted)[0].Hint, "service logs -n storage")
}

func TestAServiceThatTheRunDidNotChangeIsNotTakenBack(t *testing.T) {
	l := newLab(t)
	require.NoError(t, l.start("storage"))
	l.ready.states["storage"] = ready.State{}
	require.Error(t, l.start("storage"))
	assert.Equal(t, []string{"installed storage"}, l.releases.changes())
}

func TestWithoutWaitNobodyIsWaitedFor(t *testing.T) {
	l := newLab(t)
	l.ready.wait = func(context.Context, string) error { return errors.New("nobody should wait") }
	o := l.options()
	o.Wait = 0
	require.NoError(t, l.Start(t.Context(), o))
	assert.Equal(t, "not waited for", l.story.of(EventReady)[0].Message)
}

func TestACancelledRunStopsCleanlyAndTellsHowToGoOn(t *testing.T) {
	l := newLab(t)
	ctx, cancel := context.WithCancel(t.Context())
	l.ready.wait = func(ctx context.Context, name string) error {
		if name == "storage" {
			cancel()
		}
		<-ctx.Done()
		return ctx.Err()
	}
	err := l.Start(ctx, l.options())
	require.ErrorIs(t, err, context.Canceled)
	assert.Empty(t, l.story.of(EventFailed), "an interruption is no failure")
	assert.NotContains(t, l.releases.changes(), "uninstall storage", "the next run goes on from here")
	assert.Contains(t, l.story.of(EventWarning)[len(l.story.of(EventWarning))-1].Message, "interrupted")
	lease, err := l.client.CoordinationV1().Leases(kube.SystemNamespace).Get(t.Context(), facts.Lease, metav1.GetOptions{})
	require.NoError(t, err)
	assert.Empty(t, *lease.Spec.HolderIdentity, "the lock is free again")
	l.ready.wait = nil
	require.NoError(t, l.start())
}

// revisions sets the revisions that the cluster stores. Each load returns the next revision, and the last revision is the current revision.
func (l *lab) revisions(sections ...string) *int {
	loads := new(int)
	l.Load = func(context.Context) (*Desired, error) {
		d := desired(l.t, "", sections[min(*loads, len(sections)-1)])
		*loads++
		d.Revision = store.Revision{Number: 4 + *loads, UID: "u"}
		return d, nil
	}
	l.Current = func(context.Context) (store.Revision, error) {
		_, err := l.client.CoordinationV1().Leases(kube.SystemNamespace).Get(l.t.Context(), facts.Lease, metav1.GetOptions{})
		require.NoError(l.t, err, "what is asked before the lock may be changed until it is held")
		return store.Revision{Number: 4 + len(sections), UID: "u"}, nil
	}
	return loads
}

func TestAConfigurationThatWasPushedBeforeTheLockWasTakenIsUsed(t *testing.T) {
	l := newLab(t)
	loads := l.revisions("alerts: {replicas: 1}\n", "alerts: {replicas: 2}\n")
	require.NoError(t, l.start("alerts"))
	assert.Equal(t, 3, *loads, "before the lock, with it, and for what is published")
	assert.EqualValues(t, 2, l.releases.have["alerts"].Values["replicas"])
	assert.Equal(t, EventRunStarted, l.story.events[0].Kind)
	assert.Equal(t, "the cluster's configuration changed when this run started: revision 6 is used", l.story.of(EventWarning)[0].Message)
}

func TestAConfigurationThatIsStillTheSameIsLoadedOnce(t *testing.T) {
	l := newLab(t)
	loads := l.revisions("")
	require.NoError(t, l.start("alerts"))
	assert.Equal(t, 2, *loads, "once to start services, and once for what is published")
}

func TestAServiceThatWasDisabledBeforeTheLockWasTakenIsNotStarted(t *testing.T) {
	l := newLab(t)
	l.revisions("", "alerts: {enabled: false}\n")
	require.ErrorContains(t, l.start("alerts"), "alerts is disabled")
	assert.Empty(t, l.releases.changes())
	lease, err := l.client.CoordinationV1().Leases(kube.SystemNamespace).Get(t.Context(), facts.Lease, metav1.GetOptions{})
	require.NoError(t, err)
	assert.Empty(t, *lease.Spec.HolderIdentity, "the lock is free again")
}

func TestFindingsKeepARunFromChangingAnything(t *testing.T) {
	l := newLab(t)
	l.Load = func(context.Context) (*Desired, error) { return nil, errors.New("the configuration has 1 problem") }
	require.ErrorContains(t, l.start(), "1 problem")
	assert.Empty(t, l.client.Actions())
	assert.Empty(t, l.releases.changes())
}

func TestADryRunTellsPlansAndChangesNothing(t *testing.T) {
	l := newLab(t, &corev1.Node{ObjectMeta: metav1.ObjectMeta{Name: "w1"}})
	l.configure("", "alerts: {password: s3cr3t-word}\n")
	l.foreign()
	o := l.options("alerts", "storage")
	o.DryRun = true
	require.NoError(t, l.Start(t.Context(), o))
	assert.Empty(t, l.writes())
	assert.Empty(t, l.releases.changes())
	planned := l.story.of(EventPlanned)
	require.Len(t, planned, 3)
	assert.Equal(t, "Node w1", planned[0].Plan.Changes[0].Object)
	assert.Equal(t, []release.Change{
		{Action: "create", Object: "Secret pai-system/alerts-credentials"},
		{Action: "create", Object: "Deployment pai-system/alerts", Diff: "+ x\n"},
	}, planned[1].Plan.Changes)
	assert.True(t, l.story.summary().DryRun)
	assert.Equal(t, 4, l.story.summary().Changes)
}

func TestCredentialsAreKeptInASecretAndNotInTheRelease(t *testing.T) {
	l := newLab(t)
	l.configure("", "alerts: {password: s3cr3t-word}\n")
	require.NoError(t, l.start("alerts"))
	get := func() *corev1.Secret {
		s, err := l.client.CoreV1().Secrets("pai-system").Get(t.Context(), "alerts-credentials", metav1.GetOptions{})
		require.NoError(t, err)
		return s
	}
	first := get()
	assert.Equal(t, "s3cr3t-word", string(first.Data["password"]))
	assert.Equal(t, map[string]string{labelPartOf: "paictl", labelManagedBy: "paictl", labelInstance: "alerts"}, first.Labels)
	raw, err := json.Marshal(l.releases.have["alerts"].Values)
	require.NoError(t, err)
	assert.NotContains(t, string(raw), "s3cr3t-word")

	l.configure("", "alerts: {password: another-word}\n")
	require.NoError(t, l.start("alerts"))
	assert.Equal(t, "another-word", string(get().Data["password"]))
	assert.NotEqual(t, first.Annotations[annotationRevision], get().Annotations[annotationRevision])
	assert.Equal(t, []string{"installed alerts", "upgraded alerts"}, l.releases.changes(), "pods roll when a password changes")
}

func TestAFailedStartPutsTheCredentialsBack(t *testing.T) {
	for name, fail := range map[string]func(*lab){
		"pods that don't become ready": func(l *lab) { l.ready.states["alerts"] = ready.State{Pods: 1} },
		"a manifest that is refused": func(l *lab) {
			l.Releases = refusing{l.releases}
		},
	} {
		t.Run(name, func(t *testing.T) {
			l := newLab(t)
			l.configure("", "alerts: {password: s3cr3t-word}\n")
			require.NoError(t, l.start("alerts"))
			get := func() *corev1.Secret {
				s, err := l.client.CoreV1().Secrets("pai-system").Get(t.Context(), "alerts-credentials", metav1.GetOptions{})
				require.NoError(t, err)
				return s
			}
			first := get()
			l.configure("", "alerts: {password: wrong-word}\n")
			fail(l)
			require.Error(t, l.start("alerts"))
			assert.Equal(t, "s3cr3t-word", string(get().Data["password"]))
			assert.Equal(t, first.Annotations, get().Annotations, "as the earlier revision knows them")
		})
	}
}

func TestWhatAPlanSaysOfSecretsIsMasked(t *testing.T) {
	l := newLab(t)
	l.configure("", "alerts: {password: s3cr3t-word}\n")
	l.Releases = refusing{l.releases}
	o := l.options("alerts")
	o.DryRun = true
	err := l.Start(t.Context(), o)
	require.ErrorContains(t, err, "refused: ********")
	assert.NotContains(t, l.story.summary().Error, "s3cr3t-word")
}

// refusing is a release.Manager that rejects all releases without sending requests.
type refusing struct{ *releases }

func (refusing) Apply(context.Context, release.Request) (release.Outcome, error) {
	return release.Outcome{}, errors.New("refused")
}

func (refusing) Plan(context.Context, release.Request) (release.Plan, error) {
	return release.Plan{}, errors.New("refused: s3cr3t-word")
}

func TestPullSecretsAreWhereImagesArePulled(t *testing.T) {
	l := newLab(t)
	l.configure(", username: bob, password: hunter22, secret-name: reg", "")
	l.releases.hold = func(verb, name string) {
		if verb == "apply" && name == "storage" { // as cluster-configuration does
			_, err := l.client.CoreV1().Namespaces().Create(t.Context(), &corev1.Namespace{ObjectMeta: metav1.ObjectMeta{Name: kube.JobNamespace}}, metav1.CreateOptions{})
			require.NoError(t, err)
		}
	}
	require.NoError(t, l.start())
	for _, ns := range []string{kube.SystemNamespace, kube.JobNamespace} {
		s, err := l.client.CoreV1().Secrets(ns).Get(t.Context(), "reg", metav1.GetOptions{})
		require.NoError(t, err, ns)
		assert.Equal(t, corev1.SecretTypeDockerConfigJson, s.Type)
		assert.JSONEq(t, `{"auths": {"https://index.docker.io/v1/": {"username": "bob", "password": "hunter22", "auth": "Ym9iOmh1bnRlcjIy"}}}`, string(s.Data[".dockerconfigjson"]))
	}
}

func TestWithoutARegistryUserThereIsNoPullSecret(t *testing.T) {
	l := newLab(t)
	require.NoError(t, l.start())
	list, err := l.client.CoreV1().Secrets("").List(t.Context(), metav1.ListOptions{LabelSelector: labelManagedBy + "=" + manager})
	require.NoError(t, err)
	assert.Empty(t, list.Items)
}

func TestNoEventHoldsASecret(t *testing.T) {
	l := newLab(t)
	l.configure(", username: bob, password: hunter22", "alerts: {password: s3cr3t-word}\n")
	l.ready.states["alerts"] = ready.State{Problems: []ready.Problem{{
		Object: "pod/alerts-0", Reason: "CrashLoopBackOff", Message: "cannot log in with s3cr3t-word", Hint: "is hunter22 right?", Log: []string{"password=s3cr3t-word"},
	}}}
	l.releases.refuse["node-exporter"] = errors.New("the server says hunter22")
	err := l.start()
	require.Error(t, err)
	raw, jsonErr := json.Marshal(l.story.events)
	require.NoError(t, jsonErr)
	for _, word := range []string{"s3cr3t-word", "hunter22"} {
		assert.NotContains(t, string(raw), word)
		assert.NotContains(t, err.Error(), word)
	}
	assert.Contains(t, string(raw), "password=********")
}

func TestRenewReplacesThePodsOfWhatIsUnchanged(t *testing.T) {
	l := newLab(t)
	require.NoError(t, l.start("grafana"))
	l.client.ClearActions()
	o := l.options("grafana")
	o.Renew = true
	err := l.Restart(t.Context(), o)
	require.Error(t, err, "the fake cluster has no such deployment")
	patched := []string{}
	for _, a := range l.client.Actions() {
		if a.GetVerb() == "patch" {
			patched = append(patched, a.(interface{ GetName() string }).GetName())
		}
	}
	assert.Equal(t, []string{"grafana"}, patched, "prerequisites that nobody named are left alone")
}

func TestTheInventoryNamesWhatWasStarted(t *testing.T) {
	l := newLab(t)
	require.NoError(t, l.start("grafana"))
	have, err := readInventory(t.Context(), l.client)
	require.NoError(t, err)
	assert.Equal(t, entry{Namespace: "pai-system", Source: "embedded", Requires: []string{"prometheus"}}, have["grafana"])
	assert.Len(t, have, 4)
}

func TestALostLockStopsTheRun(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		l := newLab(t)
		var stolen atomic.Bool
		l.client.PrependReactor("update", "leases", func(a clienttesting.Action) (bool, runtime.Object, error) {
			if stolen.Load() {
				return conflict(a)
			}
			return false, nil, nil
		})
		l.ready.wait = func(ctx context.Context, _ string) error {
			api := l.client.CoordinationV1().Leases(kube.SystemNamespace)
			lease, err := api.Get(ctx, facts.Lease, metav1.GetOptions{})
			require.NoError(t, err)
			lease.Spec.HolderIdentity = ptr("somebody else")
			_, err = api.Update(ctx, lease, metav1.UpdateOptions{})
			require.NoError(t, err)
			stolen.Store(true)
			<-ctx.Done()
			return context.Cause(ctx)
		}
		err := l.start("storage")
		require.ErrorIs(t, err, ErrLockLost)
		assert.Equal(t, []string{"installed storage"}, l.releases.changes(), "another run may work on it now")
	})
}

func TestAStartTellsWhatItLeavesRunning(t *testing.T) {
	l := newLab(t)
	require.NoError(t, l.start())
	l.configure("", "grafana: {enabled: false}\n")
	require.NoError(t, l.start())
	last := l.story.of(EventWarning)[len(l.story.of(EventWarning))-1]
	assert.Equal(t, "started earlier, but now disabled or no longer in the configuration: grafana", last.Message)
	assert.Equal(t, "stop them with: paictl service stop -n grafana", last.Hint)
	require.NoError(t, l.stop("grafana"))
	require.NoError(t, l.start())
	assert.NotContains(t, l.story.of(EventWarning)[len(l.story.of(EventWarning))-1].Message, "grafana")
}

func TestAServiceIsNotStartedBesideItselfInAnotherNamespace(t *testing.T) {
	l := started(t)
	old := l.releases.have["grafana"]
	old.Namespace = "old"
	l.releases.have["grafana"] = old
	inventory, err := l.client.CoreV1().ConfigMaps("pai-system").Get(t.Context(), InventoryName, metav1.GetOptions{})
	require.NoError(t, err)
	inventory.Data["grafana"] = `{"namespace":"old","source":"oci://x"}`
	_, err = l.client.CoreV1().ConfigMaps("pai-system").Update(t.Context(), inventory, metav1.UpdateOptions{})
	require.NoError(t, err)
	l.releases.forget()
	err = l.start("grafana")
	require.ErrorContains(t, err, "grafana runs in the namespace old, but the configuration says pai-system")
	assert.Contains(t, hint.Of(err), "service stop -n grafana")
	assert.Empty(t, l.releases.changes())

	delete(l.releases.have, "grafana")
	require.NoError(t, l.start("grafana"), "nothing runs there any more")
}
