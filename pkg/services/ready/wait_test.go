package ready

import (
	"context"
	"errors"
	"slices"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
	appsv1 "k8s.io/api/apps/v1"
	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/client-go/kubernetes/fake"
	clienttesting "k8s.io/client-go/testing"

	"github.com/openpai/paictl/pkg/hint"
)

const grafana = "apiVersion: apps/v1\nkind: Deployment\nmetadata: {name: grafana}\n"

// patient runs a wait in the background with fake time.
type patient struct {
	*testing.T
	client *fake.Clientset
	result chan outcome

	mu   sync.Mutex
	seen []State
}

// told returns the states that the wait has reported so far.
func (p *patient) told() []State {
	p.mu.Lock()
	defer p.mu.Unlock()
	return slices.Clone(p.seen)
}

type outcome struct {
	state State
	err   error
	after time.Duration
}

func wait(t *testing.T, ctx context.Context, o WaitOptions, objects ...runtime.Object) *patient {
	t.Helper()
	p := &patient{T: t, client: fake.NewClientset(objects...), result: make(chan outcome, 1)}
	o.OnChange = func(s State) {
		p.mu.Lock()
		defer p.mu.Unlock()
		p.seen = append(p.seen, s)
	}
	began := time.Now()
	go func() {
		state, err := New(p.client).Wait(ctx, ns, grafana, o)
		p.result <- outcome{state, err, time.Since(began)}
	}()
	return p
}

// settled waits until the watches have received the test's changes.
func (p *patient) settled() { time.Sleep(2 * time.Second); synctest.Wait() }

func (p *patient) update(d *appsv1.Deployment) {
	_, err := p.client.AppsV1().Deployments(ns).Update(p.Context(), d, metav1.UpdateOptions{})
	require.NoError(p, err)
}

func (p *patient) end() outcome { return <-p.result }

func TestAWaitEndsWhenThePodsAreReady(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		d, r := deployment(1)
		one := broken(pod("p", r, kindReplicaSet), waiting("ContainerCreating", ""))
		d.Status.AvailableReplicas = 0
		p := wait(t, t.Context(), WaitOptions{Timeout: time.Minute}, d, r, one, node("a", corev1.ConditionTrue))
		p.settled()
		require.Len(t, p.told(), 1)
		assert.False(t, p.told()[0].Ready)

		_, err := p.client.CoreV1().Pods(ns).Update(t.Context(), pod("p", r, kindReplicaSet), metav1.UpdateOptions{})
		require.NoError(t, err)
		d.Status.AvailableReplicas = 1
		p.update(d)
		got := p.end()
		require.NoError(t, got.err)
		assert.True(t, got.state.Ready)
		assert.Equal(t, 1, got.state.ReadyPods)
		assert.True(t, p.told()[len(p.told())-1].Ready)
	})
}

func TestAWaitEndsEarlyWhenAFinalProblemStays(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		d, r := deployment(1)
		d.Status.AvailableReplicas = 0
		bad := broken(pod("p", r, kindReplicaSet), waiting("InvalidImageName", "x"))
		p := wait(t, t.Context(), WaitOptions{Timeout: time.Hour, Grace: 10 * time.Second}, d, r, bad, node("a", corev1.ConditionTrue))
		got := p.end()
		var e *NotReadyError
		require.ErrorAs(t, got.err, &e)
		assert.Equal(t, got.state, e.State)
		assert.Equal(t, `pod/p: container main: "example.org/grafana:1" is not an image name`, got.err.Error())
		assert.Contains(t, hint.Of(got.err), "image.repository")
		assert.GreaterOrEqual(t, got.after, 10*time.Second)
		assert.Less(t, got.after, 13*time.Second)
		assert.Len(t, p.told(), 1, "the problem is told at once, and once")
	})
}

func TestAProblemThatIsOverInAMomentIsNotTold(t *testing.T) {
	for name, ends := range map[string]bool{"it ends": true, "it stays": false} {
		t.Run(name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				d, r := deployment(1)
				d.Status.AvailableReplicas = 0
				bad := broken(pod("p", r, kindReplicaSet), waiting("InvalidImageName", "x"))
				p := wait(t, t.Context(), WaitOptions{Timeout: time.Minute, Grace: time.Hour, Calm: 5 * time.Second}, d, r, bad, node("a", corev1.ConditionTrue))
				time.Sleep(3500 * time.Millisecond)
				synctest.Wait()
				require.Len(t, p.told(), 1)
				assert.Empty(t, p.told()[0].Problems)
				if !ends {
					time.Sleep(3 * time.Second)
					synctest.Wait()
					require.Len(t, p.told(), 2)
					assert.Len(t, p.told()[1].Problems, 1)
					assert.ErrorContains(t, p.end().err, "is not an image name", "the error has it, too")
					return
				}
				_, err := p.client.CoreV1().Pods(ns).Update(t.Context(), pod("p", r, kindReplicaSet), metav1.UpdateOptions{})
				require.NoError(t, err)
				d.Status.AvailableReplicas = 1
				p.update(d)
				require.NoError(t, p.end().err)
				for _, s := range p.told() {
					assert.Empty(t, s.Problems)
				}
			})
		})
	}
}

func TestAFinalProblemOfAnotherPodGoesOnWithItsTime(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		d, r := deployment(1)
		d.Status.AvailableReplicas = 0
		p := wait(t, t.Context(), WaitOptions{Grace: 10 * time.Second}, d, r,
			broken(pod("first", r, kindReplicaSet), waiting("InvalidImageName", "x")), node("a", corev1.ConditionTrue))
		time.Sleep(6500 * time.Millisecond) // between two looks
		require.NoError(t, p.client.CoreV1().Pods(ns).Delete(t.Context(), "first", metav1.DeleteOptions{}))
		_, err := p.client.CoreV1().Pods(ns).Create(t.Context(), broken(pod("second", r, kindReplicaSet), waiting("InvalidImageName", "x")), metav1.CreateOptions{})
		require.NoError(t, err)
		got := p.end()
		require.Error(t, got.err)
		assert.Less(t, got.after, 13*time.Second)
		assert.Equal(t, "pod/second", got.state.Problems[0].Object)
	})
}

func TestAFinalProblemThatIsMendedInTimeIsForgiven(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		d, r := deployment(1)
		d.Status.AvailableReplicas = 0
		p := wait(t, t.Context(), WaitOptions{Timeout: time.Minute, Grace: 10 * time.Second}, d, r,
			broken(pod("p", r, kindReplicaSet), waiting("CreateContainerConfigError", "x")), node("a", corev1.ConditionTrue))
		time.Sleep(8 * time.Second)
		_, err := p.client.CoreV1().Pods(ns).Update(t.Context(), pod("p", r, kindReplicaSet), metav1.UpdateOptions{})
		require.NoError(t, err)
		d.Status.AvailableReplicas = 1
		p.update(d)
		require.NoError(t, p.end().err)
	})
}

func TestAWaitThatTakesTooLongSaysHowFarItGot(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		d, r := deployment(2)
		d.Status.AvailableReplicas = 1
		p := wait(t, t.Context(), WaitOptions{Timeout: 30 * time.Second}, d, r, pod("p", r, kindReplicaSet), node("a", corev1.ConditionTrue))
		got := p.end()
		assert.EqualError(t, got.err, "not ready after 30s: 1 of 2 pods are ready")
		assert.NotEmpty(t, hint.Of(got.err))
		assert.Equal(t, 30*time.Second, got.after)
	})
}

func TestTheStateBeforeAnUpgradeIsNotTakenForItsResult(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		d, r := deployment(1)
		client := fake.NewClientset(d, r, pod("p", r, kindReplicaSet), node("a", corev1.ConditionTrue))
		// The API returns generation 2, but lists and watches still return an older generation.
		client.PrependReactor("get", "deployments", func(clienttesting.Action) (bool, runtime.Object, error) {
			newer := d.DeepCopy()
			newer.Generation = 2
			return true, newer, nil
		})
		_, err := New(client).Wait(t.Context(), ns, grafana, WaitOptions{Timeout: 20 * time.Second})
		assert.EqualError(t, err, "not ready after 20s: 0 of 0 pods are ready")
	})
}

func TestAWaitEndsWithItsContext(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		ctx, cancel := context.WithCancel(t.Context())
		d, r := deployment(1)
		d.Status.AvailableReplicas = 0
		p := wait(t, ctx, WaitOptions{}, d, r, node("a", corev1.ConditionTrue))
		p.settled()
		cancel()
		assert.ErrorIs(t, p.end().err, context.Canceled)
	})
}

func TestAWaitThatMayNotLookSaysSo(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		d, r := deployment(1)
		client := fake.NewClientset(d, r)
		client.PrependReactor("list", "nodes", func(clienttesting.Action) (bool, runtime.Object, error) {
			return true, nil, apierrors.NewForbidden(schema.GroupResource{Resource: "nodes"}, "", errors.New("no"))
		})
		_, err := New(client).Wait(t.Context(), ns, grafana, WaitOptions{Timeout: time.Hour})
		assert.True(t, apierrors.IsForbidden(err), err)
	})
}

func TestWaitsInANamespaceShareWhatTheyWatch(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		d, r := deployment(1)
		d.Status.AvailableReplicas = 0
		client := fake.NewClientset(d, r, node("a", corev1.ConditionTrue))
		checker := New(client)
		errs := make(chan error, 5)
		for range cap(errs) {
			go func() {
				_, err := checker.Wait(t.Context(), ns, grafana, WaitOptions{Timeout: time.Minute})
				errs <- err
			}()
		}
		time.Sleep(2 * time.Second)
		watches := 0
		for _, a := range client.Actions() {
			if a.GetVerb() == "watch" && a.GetResource().Resource == "pods" {
				watches++
			}
		}
		assert.Equal(t, 1, watches)
		d.Status.AvailableReplicas = 1
		_, err := client.AppsV1().Deployments(ns).Update(t.Context(), d, metav1.UpdateOptions{})
		require.NoError(t, err)
		for range cap(errs) {
			assert.NoError(t, <-errs)
		}
		assert.Empty(t, checker.feeds)
	})
}

func TestNothingToWaitForIsReady(t *testing.T) {
	got, err := New(fake.NewClientset()).Wait(t.Context(), ns, "apiVersion: v1\nkind: ConfigMap\nmetadata: {name: a}\n", WaitOptions{})
	require.NoError(t, err)
	assert.Equal(t, State{Ready: true}, got)
}

func targetsIn(t *testing.T, manifest string) []Target {
	t.Helper()
	out, err := Targets(ns, manifest)
	require.NoError(t, err)
	return out
}

func TestCheckLooksOnceForManyReleases(t *testing.T) {
	d, r := deployment(1)
	client := fake.NewClientset(d, r, pod("p", r, kindReplicaSet), node("a", corev1.ConditionTrue))
	got, err := New(client).CheckAll(t.Context(), [][]Target{targetsIn(t, grafana), targetsIn(t, grafana), nil})
	require.NoError(t, err)
	assert.True(t, got[0].Ready)
	assert.Equal(t, got[0], got[1])
	assert.Equal(t, State{Ready: true}, got[2])
	assert.Len(t, client.Actions(), 4, "deployments, replica sets, pods, nodes")
}

func TestEventsAndLogsAreReadOncePerProblem(t *testing.T) {
	d, r := deployment(1)
	d.Status.AvailableReplicas = 0
	bad := broken(pod("p", r, kindReplicaSet), crashLoop(2, 137, "Error"))
	about := event("Unhealthy", "Liveness probe failed: \x1b[31mno\x1b[0m")
	about.InvolvedObject = corev1.ObjectReference{Kind: "Pod", Namespace: ns, Name: "p", UID: "p"}
	other := event("Unhealthy", "of another pod")
	other.Name, other.InvolvedObject = "other", corev1.ObjectReference{Kind: "Pod", Namespace: ns, Name: "q", UID: "q"}
	client := fake.NewClientset(d, r, bad, node("a", corev1.ConditionTrue), &about, &other)
	got, err := New(client).Check(t.Context(), ns, grafana)
	require.NoError(t, err)
	require.Len(t, got.Problems, 1)
	assert.Equal(t, "container main was restarted 3 times: Liveness probe failed: no", got.Problems[0].Message)
	assert.Equal(t, []string{"fake logs"}, got.Problems[0].Log)
}
