package store_test

import (
	"encoding/json"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/client-go/kubernetes/fake"

	"github.com/openpai/paictl/pkg/config"
	"github.com/openpai/paictl/pkg/config/store"
	"github.com/openpai/paictl/pkg/kube"
)

func TestAFolderIsComparedWithAConfigMapThatSomebodyElseRead(t *testing.T) {
	client := fake.NewClientset()
	mustPush(t, newStore(client), store.Candidate{Dir: "cluster", Files: files(t)})
	cm, err := client.CoreV1().ConfigMaps(kube.SystemNamespace).Get(t.Context(), store.ConfigMapName, metav1.GetOptions{})
	require.NoError(t, err)
	text, err := json.Marshal(cm)
	require.NoError(t, err)
	apart := newStore(nil) // it can't send requests

	r, differ, err := apart.Differing(text, "cluster", files(t))
	require.NoError(t, err)
	assert.Equal(t, 1, r.Number)
	assert.Empty(t, differ, "secrets stand elsewhere and are not missed")

	edited := files(t)
	edited[config.LayoutFile] = append(edited[config.LayoutFile], "# one more line\n"...)
	_, differ, err = apart.Differing(text, "cluster", edited)
	require.NoError(t, err)
	assert.Equal(t, []string{config.LayoutFile}, differ)

	_, _, err = apart.Differing([]byte("{}"), "cluster", files(t))
	assert.ErrorContains(t, err, "was not made by paictl")
}
