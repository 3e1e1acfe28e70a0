package controller

import (
	"context"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/labels"
	"sigs.k8s.io/controller-runtime/pkg/client"
)

// listed is a client that records the options of a list as they reach the API server.
type listed struct {
	client.WithWatch
	options metav1.ListOptions
}

func (l *listed) List(_ context.Context, _ client.ObjectList, opts ...client.ListOption) error {
	l.options = *(&client.ListOptions{}).ApplyOptions(opts).AsListOptions()
	return nil
}

func TestListsAreReadInThePagesThatAreRequested(t *testing.T) {
	api := &listed{}
	from := sourceOf(api, "jobs", &corev1.PodList{}, client.ListOptions{LabelSelector: labels.SelectorFromSet(labels.Set{"a": "b"})})
	_, err := from.List(t.Context(), metav1.ListOptions{Limit: 500, Continue: "next", ResourceVersion: "7"})
	require.NoError(t, err)
	assert.Equal(t, metav1.ListOptions{LabelSelector: "a=b", Limit: 500, Continue: "next", ResourceVersion: "7"}, api.options)
}
