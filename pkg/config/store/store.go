// Package store keeps a cluster's configuration in the cluster itself.
// In: the four files. Out: ConfigMap pai-configuration, with every secret replaced by a
// reference; Secret pai-credentials, with what the references mean; their last revisions.
package store

// Names of the objects in kube.SystemNamespace.
const (
	ConfigMapName = "pai-configuration"
	SecretName    = "pai-credentials"
)
