package assembly_test

import (
	"context"
	"strconv"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
	"golang.org/x/sync/errgroup"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/openpai/paictl/pkg/kube/kubetest"
	"github.com/openpai/paictl/pkg/people/onetime"
	v1 "github.com/openpai/paictl/pkg/people/v1"
	"github.com/openpai/paictl/pkg/server/servertest"
)

func TestManyProgramsThatWaitKeepNoOneElseOut(t *testing.T) {
	c := kubetest.Start(t)
	servertest.Prepare(t, c)
	s := servertest.Start(t, c, servertest.Options{})
	secrets := c.Client.CoreV1().Secrets(v1.Namespace)
	device := metav1.ListOptions{LabelSelector: "paictl.openpai.org/once=" + string(onetime.Device)}
	t.Cleanup(func() {
		_ = secrets.DeleteCollection(context.WithoutCancel(t.Context()), metav1.DeleteOptions{}, device)
	})
	var all errgroup.Group
	all.SetLimit(16)
	for i := range 1000 {
		all.Go(func() error {
			_, err := secrets.Create(t.Context(), &corev1.Secret{
				ObjectMeta: metav1.ObjectMeta{Name: v1.OnceName(string(onetime.Device), strconv.Itoa(i)), Labels: map[string]string{v1.LabelPeople: v1.SecretOnce, "paictl.openpai.org/once": string(onetime.Device)}},
				StringData: map[string]string{"network": "2001:db8:" + strconv.Itoa(i/50) + "::/48", "expires": time.Now().Add(10 * time.Minute).UTC().Format(time.RFC3339Nano)},
			}, metav1.CreateOptions{})
			return err
		})
	}
	require.NoError(t, all.Wait())
	a := s.Do("POST", "/oauth/device_authorization", "", "client_id=paictl", "Content-Type", "application/x-www-form-urlencoded")
	require.Equal(t, 200, a.Status, a.Body)
	list, err := secrets.List(t.Context(), device)
	require.NoError(t, err)
	assert.Len(t, list.Items, 1000, "one has gone")
}
