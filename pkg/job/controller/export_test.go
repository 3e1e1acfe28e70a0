package controller

import (
	"context"

	corev1 "k8s.io/api/core/v1"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/openpai/paictl/pkg/job/controller/machine"
	v1 "github.com/openpai/paictl/pkg/job/v1"
)

// SetPolicy sets shorter delays for a test.
func (o *Options) SetPolicy(p machine.Policy) { o.policy = p }

// Put writes a chunk like a replica that considers itself the leader.
func Put(ctx context.Context, api client.Client, f *v1.Framework, cm *corev1.ConfigMap) error {
	return (&reconciler{api: api}).put(ctx, f, cm)
}
