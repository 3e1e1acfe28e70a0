package services

import (
	"context"
	"encoding/json"
	"os"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/client-go/kubernetes/fake"
	clienttesting "k8s.io/client-go/testing"

	"github.com/openpai/paictl/pkg/hint"
	"github.com/openpai/paictl/pkg/kube"
	"github.com/openpai/paictl/pkg/services/facts"
)

func person(name, host string) Process {
	return Process{User: name, Host: host, Boot: "boot-" + host, Namespace: "pid:[1]", PID: 42, Started: "7"}
}

func ahead(d time.Duration) func() time.Time {
	return func() time.Time { return time.Now().Add(d) }
}

func hold(t *testing.T, l *Lock) (context.Context, func()) {
	t.Helper()
	ctx, release, err := l.Hold(t.Context())
	require.NoError(t, err)
	return ctx, release
}

func TestASecondRunIsRefusedWhileTheFirstHoldsTheLock(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		client := fake.NewClientset()
		_, release := hold(t, NewLock(client, person("ann", "a"), "paictl service start", time.Now))
		defer release()
		for _, after := range []time.Duration{0, 7 * time.Second, time.Minute} {
			time.Sleep(after)
			began := time.Now()
			_, _, err := NewLock(client, person("bob", "b"), "paictl service stop", time.Now).Hold(t.Context())
			var locked *LockedError
			require.ErrorAs(t, err, &locked)
			assert.Equal(t, 5, locked.ExitCode())
			assert.Equal(t, "ann@a, pid 42", locked.Owner)
			assert.Equal(t, "paictl service start", locked.Command)
			assert.Equal(t, "2000-01-01T00:00:00Z", locked.Since)
			assert.Contains(t, hint.Of(err), "wait for it to end")
			assert.Less(t, time.Since(began), 5*time.Second)
		}
	})
}

func TestALockThatWasReleasedIsFreeAtOnce(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		client := fake.NewClientset()
		_, release := hold(t, NewLock(client, person("ann", "a"), "x", time.Now))
		release()
		_, release = hold(t, NewLock(client, person("bob", "b"), "y", time.Now))
		release()
	})
}

// abandon acquires the lock and doesn't renew it, like a killed program.
func abandon(t *testing.T, client *fake.Clientset, p Process, clock func() time.Time) {
	t.Helper()
	l := NewLock(client, p, "paictl service start", clock)
	l.identity = "killed"
	require.NoError(t, l.acquire(t.Context()))
}

func TestTheLockOfAKilledRunEndsByItself(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		client := fake.NewClientset()
		abandon(t, client, person("ann", "a"), time.Now)
		_, _, err := NewLock(client, person("bob", "b"), "y", time.Now).Hold(t.Context())
		require.ErrorAs(t, err, new(*LockedError))
		assert.Contains(t, hint.Of(err), "expires 30 s later")
		time.Sleep(leaseDuration)
		_, release := hold(t, NewLock(client, person("bob", "b"), "y", time.Now))
		release()
	})
}

func TestADeadProcessOfThisHostHoldsNoLock(t *testing.T) {
	client := fake.NewClientset()
	dead := ThisProcess()
	dead.Started = "0" // the pid is in use again, or free
	abandon(t, client, dead, time.Now)
	_, release := hold(t, NewLock(client, ThisProcess(), "y", time.Now))
	release()
	abandon(t, client, ThisProcess(), time.Now)
	_, _, err := NewLock(client, ThisProcess(), "y", time.Now).Hold(t.Context())
	require.ErrorAs(t, err, new(*LockedError), "this process lives")
}

func TestOnlyAProcessOfTheSameHostIsKnownToBeDead(t *testing.T) {
	here := ThisProcess()
	for name, change := range map[string]func(*Process){
		"another host":          func(p *Process) { p.Host = "other" },
		"another boot":          func(p *Process) { p.Boot = "other" },
		"another pid namespace": func(p *Process) { p.Namespace = "pid:[other]" },
		"nothing known":         func(p *Process) { p.Boot, p.Namespace, p.Started = "", "", "" },
	} {
		p := here
		p.Started = "0"
		assert.True(t, p.deadSeenFrom(here))
		change(&p)
		assert.False(t, p.deadSeenFrom(here), name)
	}
	assert.False(t, here.deadSeenFrom(here))
	assert.Equal(t, os.Getpid(), here.PID)
	assert.NotEmpty(t, here.Started)
}

func TestAProcessThatIsHiddenIsNotTakenForDead(t *testing.T) {
	_, known := startTime(t.TempDir(), os.Getpid()) // as /proc looks to others with hidepid=2
	assert.False(t, known)
	started, known := startTime(t.TempDir(), 1<<30) // there are no such numbers
	assert.True(t, known)
	assert.Empty(t, started)
}

func TestWrongClocksNeitherStealNorKeepALock(t *testing.T) {
	for name, wrong := range map[string]time.Duration{"ahead": time.Hour, "behind": -time.Hour} {
		t.Run("the second run's clock is "+name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				client := fake.NewClientset()
				ctx, release := hold(t, NewLock(client, person("ann", "a"), "x", time.Now))
				began := time.Now()
				_, _, err := NewLock(client, person("bob", "b"), "y", ahead(wrong)).Hold(t.Context())
				require.ErrorAs(t, err, new(*LockedError), "the holder lives")
				assert.Less(t, time.Since(began), 5*time.Second)
				require.NoError(t, ctx.Err())
				release()
			})
		})
		t.Run("the killed run's clock was "+name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				client := fake.NewClientset()
				abandon(t, client, person("ann", "a"), ahead(wrong))
				_, release := hold(t, NewLock(client, person("bob", "b"), "y", time.Now))
				release()
			})
		})
	}
}

func TestTheLeaseIsRenewedAlsoWhileACancelledRunTidiesUp(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		client := fake.NewClientset()
		ctx, cancel := context.WithCancel(t.Context())
		held, release, err := NewLock(client, person("ann", "a"), "x", time.Now).Hold(ctx)
		require.NoError(t, err)
		cancel()
		<-held.Done()
		time.Sleep(time.Minute)
		_, _, err = NewLock(client, person("bob", "b"), "y", time.Now).Hold(t.Context())
		require.ErrorAs(t, err, new(*LockedError))
		release()
	})
}

// unsteady returns a client and a flag. While the flag is set, the server rejects renewals of leases.
func unsteady() (*fake.Clientset, *atomic.Bool) {
	client, away := fake.NewClientset(), &atomic.Bool{}
	client.PrependReactor("update", "leases", func(a clienttesting.Action) (bool, runtime.Object, error) {
		if away.Load() {
			return unavailable(a)
		}
		return false, nil, nil
	})
	return client, away
}

func TestALockThatCannotBeRenewedIsGivenUpBeforeItEnds(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		client, away := unsteady()
		held, release := hold(t, NewLock(client, person("ann", "a"), "x", time.Now))
		defer release()
		away.Store(true)
		began := time.Now()
		<-held.Done()
		require.ErrorIs(t, context.Cause(held), ErrLockLost)
		assert.Less(t, time.Since(began), leaseDuration)
	})
}

func TestALockOutlivesARestartOfTheAPIServer(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		client, away := unsteady()
		held, release := hold(t, NewLock(client, person("ann", "a"), "x", time.Now))
		defer release()
		away.Store(true)
		time.Sleep(20 * time.Second)
		away.Store(false)
		time.Sleep(time.Minute)
		require.NoError(t, held.Err())
		_, _, err := NewLock(client, person("bob", "b"), "y", time.Now).Hold(t.Context())
		require.ErrorAs(t, err, new(*LockedError))
	})
}

func TestTheLeaseTellsAPersonWhoHoldsIt(t *testing.T) {
	client := fake.NewClientset()
	_, release := hold(t, NewLock(client, person("ann", "a"), "paictl service start -n grafana", time.Now))
	defer release()
	lease, err := client.CoordinationV1().Leases(kube.SystemNamespace).Get(t.Context(), "paictl", metav1.GetOptions{})
	require.NoError(t, err)
	assert.Contains(t, *lease.Spec.HolderIdentity, "ann@a, pid 42")
	assert.Equal(t, "paictl service start -n grafana", lease.Annotations[facts.AnnotationCommand])
	var p Process
	require.NoError(t, json.Unmarshal([]byte(lease.Annotations[annotationProcess]), &p))
	assert.Equal(t, "ann", p.User)
}
