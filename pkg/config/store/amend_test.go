package store_test

import (
	"bytes"
	"errors"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/client-go/kubernetes/fake"
	clienttesting "k8s.io/client-go/testing"

	"github.com/openpai/paictl/pkg/config"
	"github.com/openpai/paictl/pkg/config/store"
)

func withoutSecrets(client *fake.Clientset) *fake.Clientset {
	out := fake.NewClientset()
	out.PrependReactor("*", "*", func(a clienttesting.Action) (bool, runtime.Object, error) {
		if a.GetResource().Resource == "secrets" {
			return true, nil, errors.New("secrets are not for you")
		}
		o, err := client.Invokes(a, nil)
		return true, o, err
	})
	return out
}

func TestAFileIsAmendedWithoutReadingSecrets(t *testing.T) {
	client := fake.NewClientset()
	whole := newStore(client)
	mustPush(t, whole, store.Candidate{Dir: "cluster", Files: files(t), Source: "git::https://g/r"})
	s := newStore(withoutSecrets(client))
	p, err := s.Public(t.Context())
	require.NoError(t, err)
	assert.Contains(t, string(p.Files[config.LayoutFile]), store.Reference)
	text := append([]byte("# amended\n"), p.Files[config.LayoutFile]...)
	d, err := s.Amend(p, config.LayoutFile, text)
	require.NoError(t, err)
	assert.Empty(t, d.Warnings, "earlier findings are not repeated")
	r, err := s.Push(t.Context(), d, store.Entry{By: "root"})
	require.NoError(t, err)
	assert.Equal(t, 2, r.Number)
	assert.Empty(t, r.Source, "a push from the source of the first revision must not overwrite it")

	c, err := whole.Pull(t.Context())
	require.NoError(t, err)
	assert.Equal(t, append([]byte("# amended\n"), files(t)[config.LayoutFile]...), c.Files[config.LayoutFile], "its secrets are the same")
	first, err := whole.At(t.Context(), 1)
	require.NoError(t, err)
	assert.Equal(t, files(t), first.Files)
}

func TestAnAmendmentIsCheckedAndKeepsSecrets(t *testing.T) {
	client := fake.NewClientset()
	s := newStore(client)
	mustPush(t, s, store.Candidate{Dir: "cluster", Files: files(t)})
	p, err := s.Public(t.Context())
	require.NoError(t, err)
	layout := p.Files[config.LayoutFile]
	for says, text := range map[string][]byte{
		"unknown":              append(bytes.Clone(layout), "nonsense: 1\n"...),
		"concerns its secrets": bytes.Replace(layout, []byte(store.Reference), []byte("hunter3"), 1),
	} {
		_, err = s.Amend(p, config.LayoutFile, text)
		require.ErrorContains(t, err, says)
	}
	d, err := s.Amend(p, config.LayoutFile, append([]byte("# mine\n"), layout...))
	require.NoError(t, err)
	client.PrependReactor("update", "configmaps", func(clienttesting.Action) (bool, runtime.Object, error) {
		return true, nil, apierrors.NewConflict(corev1.Resource("configmaps"), store.ConfigMapName, errors.New("it was changed"))
	})
	_, err = s.Push(t.Context(), d, store.Entry{By: "root"})
	require.ErrorIs(t, err, store.ErrChanged)
}

func TestACopyWithoutAConfigurationIsNone(t *testing.T) {
	_, err := newStore(fake.NewClientset()).Public(t.Context())
	require.ErrorIs(t, err, store.ErrNone)
}
