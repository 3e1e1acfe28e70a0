// +kubebuilder:object:generate=true
// +groupName=frameworkcontroller.microsoft.com

package v1

//go:generate go run sigs.k8s.io/controller-tools/cmd/controller-gen@v0.23.0 object paths=.
