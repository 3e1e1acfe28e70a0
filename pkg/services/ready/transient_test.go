package ready

import (
	"context"
	"crypto/x509"
	"errors"
	"fmt"
	"io"
	"net"
	"net/url"
	"sync/atomic"
	"syscall"
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

var (
	refused     = &url.Error{Op: "Get", URL: "https://10.0.0.1:6443", Err: &net.OpError{Op: "dial", Err: syscall.ECONNREFUSED}}
	deployments = schema.GroupResource{Group: "apps", Resource: "deployments"}
)

func TestAnErrorIsTransientWhereAskingAgainMayHelp(t *testing.T) {
	asked := func(err error) error { return &url.Error{Op: "Get", URL: "https://10.0.0.1:6443", Err: err} }
	for name, tc := range map[string]struct {
		err  error
		want bool
	}{
		"connection refused":       {refused, true},
		"a time that is over":      {asked(context.DeadlineExceeded), true},
		"a connection that ended":  {asked(io.EOF), true},
		"an answer that ended":     {io.ErrUnexpectedEOF, true},
		"too many requests":        {apierrors.NewTooManyRequests("later", 1), true},
		"a server that starts":     {apierrors.NewServiceUnavailable("starting"), true},
		"a server's own error":     {apierrors.NewInternalError(errors.New("etcd")), true},
		"a server's timeout":       {apierrors.NewServerTimeout(deployments, "get", 1), true},
		"a gateway's timeout":      {apierrors.NewTimeoutError("slow", 1), true},
		"no right to look":         {apierrors.NewForbidden(deployments, "x", errors.New("no")), false},
		"no login":                 {apierrors.NewUnauthorized("no"), false},
		"nothing there":            {apierrors.NewNotFound(deployments, "x"), false},
		"a certificate of others":  {asked(x509.UnknownAuthorityError{}), false},
		"an interruption":          {asked(context.Canceled), false},
		"a manifest that is wrong": {errors.New("no such kind"), false},
	} {
		t.Run(name, func(t *testing.T) { assert.Equal(t, tc.want, transient(fmt.Errorf("read: %w", tc.err))) })
	}
}

// away returns a flag. While the flag is set, all calls with the verb fail.
func away(client *fake.Clientset, verb string) *atomic.Bool {
	on := &atomic.Bool{}
	client.PrependReactor(verb, "*", func(clienttesting.Action) (bool, runtime.Object, error) { return on.Load(), nil, refused })
	return on
}

func TestAWaitBeginsAlsoWhereTheAPIIsAwayForAMoment(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		d, r := deployment(1)
		client := fake.NewClientset(d, r, pod("p", r, kindReplicaSet), node("a", corev1.ConditionTrue))
		gone := away(client, "get")
		gone.Store(true)
		time.AfterFunc(10*time.Second, func() { gone.Store(false) })
		got, err := New(client).Wait(t.Context(), ns, grafana, WaitOptions{Timeout: time.Minute})
		require.NoError(t, err)
		assert.True(t, got.Ready)
	})
}

func TestAnAPIThatStaysAwayLeavesTheStateUnknown(t *testing.T) {
	for name, verb := range map[string]string{"from the start": "get", "at the end": "list"} {
		t.Run(name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				d, r := deployment(1)
				d.Status.AvailableReplicas = 0
				p := &patient{T: t, client: fake.NewClientset(d, r, node("a", corev1.ConditionTrue))}
				gone := away(p.client, verb)
				began := time.Now()
				gone.Store(verb == "get")
				time.AfterFunc(5*time.Second, func() { gone.Store(true) })
				_, err := New(p.client).Wait(t.Context(), ns, grafana, WaitOptions{Timeout: 30 * time.Second})
				var unknown *UnknownError
				require.ErrorAs(t, err, &unknown)
				require.ErrorIs(t, err, syscall.ECONNREFUSED)
				assert.Contains(t, err.Error(), "the state is unknown: the cluster's API did not answer at the end of a wait of 30s")
				assert.Contains(t, hint.Of(err), "again")
				assert.Equal(t, 30*time.Second, time.Since(began))
			})
		})
	}
}

func TestAWaitThatMayNotAskEndsAtOnce(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		d, _ := deployment(1)
		client := fake.NewClientset(d)
		client.PrependReactor("get", "deployments", func(clienttesting.Action) (bool, runtime.Object, error) {
			return true, nil, apierrors.NewForbidden(deployments, "", errors.New("no"))
		})
		began := time.Now()
		_, err := New(client).Wait(t.Context(), ns, grafana, WaitOptions{Timeout: time.Hour})
		assert.True(t, apierrors.IsForbidden(err), err)
		assert.Zero(t, time.Since(began))
	})
}

// The watched state may be outdated if the API was unavailable. Therefore the final check of a wait reads from the API.
func TestTheLastLookIsAtTheCluster(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		d, r := deployment(1)
		works := d.DeepCopy()
		d.Status.AvailableReplicas = 0
		client := fake.NewClientset(d, r, pod("p", r, kindReplicaSet), node("a", corev1.ConditionTrue))
		var mended atomic.Bool
		client.PrependReactor("list", "deployments", func(clienttesting.Action) (bool, runtime.Object, error) {
			return mended.Load(), &appsv1.DeploymentList{Items: []appsv1.Deployment{*works}}, nil
		})
		time.AfterFunc(5*time.Second, func() { mended.Store(true) })
		got, err := New(client).Wait(t.Context(), ns, grafana, WaitOptions{Timeout: 30 * time.Second})
		require.NoError(t, err)
		assert.True(t, got.Ready)
	})
}

func TestAFinalProblemDoesNotEndAWaitWhileTheAPIIsAway(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		d, r := deployment(1)
		d.Status.AvailableReplicas = 0
		client := fake.NewClientset(d, r, broken(pod("p", r, kindReplicaSet), waiting("InvalidImageName", "x")), node("a", corev1.ConditionTrue))
		gone := away(client, "list")
		time.AfterFunc(5*time.Second, func() { gone.Store(true) })
		time.AfterFunc(25*time.Second, func() {
			d.Status.AvailableReplicas = 1
			_, err := client.CoreV1().Pods(ns).Update(t.Context(), pod("p", r, kindReplicaSet), metav1.UpdateOptions{})
			assert.NoError(t, err)
			_, err = client.AppsV1().Deployments(ns).Update(t.Context(), d, metav1.UpdateOptions{})
			assert.NoError(t, err)
			gone.Store(false)
		})
		_, err := New(client).Wait(t.Context(), ns, grafana, WaitOptions{Timeout: time.Minute, Grace: 10 * time.Second})
		require.NoError(t, err)
	})
}
