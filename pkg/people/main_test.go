package people_test

import (
	"context"
	"os"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/client-go/dynamic"

	"github.com/openpai/paictl/pkg/kube/kubetest"
	"github.com/openpai/paictl/pkg/people"
	v1 "github.com/openpai/paictl/pkg/people/v1"
)

func TestMain(m *testing.M) { os.Exit(kubetest.Wrap(m).Run()) }

// cluster is a connection to an API server with the definitions, but without people.
type cluster struct {
	*people.Directory
	t   *testing.T
	api dynamic.Interface
}

func open(t *testing.T) *cluster {
	t.Helper()
	c := kubetest.Start(t)
	d, err := people.Open(c.Config, people.Options{})
	require.NoError(t, err)
	api, err := dynamic.NewForConfig(c.Config)
	require.NoError(t, err)
	require.NoError(t, d.Prepare(t.Context()))
	clean(t, api)
	require.NoError(t, c.Client.CoreV1().Secrets(v1.Namespace).DeleteCollection(t.Context(), metav1.DeleteOptions{}, metav1.ListOptions{}))
	require.NoError(t, d.Load(t.Context()))
	require.NoError(t, d.Prepare(t.Context()))
	require.NoError(t, d.Load(t.Context()))
	return &cluster{d, t, api}
}

func clean(t *testing.T, api dynamic.Interface) {
	t.Helper()
	require.NoError(t, api.Resource(v1.Users).DeleteCollection(t.Context(), metav1.DeleteOptions{}, metav1.ListOptions{}))
	require.NoError(t, api.Resource(v1.Groups).DeleteCollection(t.Context(), metav1.DeleteOptions{}, metav1.ListOptions{}))
}

const good = "correct horse battery"

func (c *cluster) add(name string, groups ...string) *people.Person {
	c.t.Helper()
	p, err := c.Add(c.t.Context(), people.NewUser{Name: name, Groups: groups, Password: good})
	require.NoError(c.t, err)
	return p
}

// watching returns another Directory of the same cluster, which watches the people.
func watching(t *testing.T) *people.Directory {
	t.Helper()
	d, err := people.Open(kubetest.Start(t).Config, people.Options{})
	require.NoError(t, err)
	ctx, cancel := context.WithCancel(t.Context())
	done := make(chan struct{})
	go func() {
		defer close(done)
		_ = d.Run(ctx)
	}()
	t.Cleanup(func() { cancel(); <-done })
	require.Eventually(t, func() bool { return d.Fresh() == nil }, 20*time.Second, 10*time.Millisecond)
	return d
}
