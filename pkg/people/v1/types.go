// Package v1 is the API group paictl.openpai.org/v1: the people of a cluster, their groups, and job templates that they share.
// In: nothing. Out: types, names of objects and Secrets, the custom resource definitions.
//
// A User, a Group or a Template contains no secrets. Secrets are in Secrets of Namespace, see secrets.go.
package v1

import (
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
)

// +kubebuilder:object:root=true
// +kubebuilder:resource:path=users,singular=user,scope=Cluster
// +kubebuilder:subresource:status
// +kubebuilder:printcolumn:name="Person",type=string,JSONPath=`.spec.name`
// +kubebuilder:printcolumn:name="Groups",type=string,JSONPath=`.spec.groups`
// +kubebuilder:printcolumn:name="Disabled",type=boolean,JSONPath=`.spec.disabled`
// +kubebuilder:printcolumn:name="Removed",type=boolean,JSONPath=`.spec.removed`
// +kubebuilder:printcolumn:name="Age",type=date,JSONPath=`.metadata.creationTimestamp`

// User is a person, or one that was removed. Its name in Kubernetes is ObjectName(spec.name).
type User struct {
	metav1.TypeMeta   `json:",inline"`
	metav1.ObjectMeta `json:"metadata,omitempty"`

	Spec   UserSpec   `json:"spec"`
	Status UserStatus `json:"status,omitempty"`
}

// UserSpec holds the properties of a person, which administrators and the person set.
type UserSpec struct {
	// +kubebuilder:validation:Pattern=`^[A-Za-z0-9]([A-Za-z0-9_.-]{0,61}[A-Za-z0-9])?$`
	// +kubebuilder:validation:XValidation:rule="self == oldSelf",message="a person keeps the name"

	// Name is the person's name. It is a label value, because jobs have it as a label.
	Name string `json:"name"`
	// +kubebuilder:validation:MaxLength=320

	// Email is only information for readers; no decision depends on the address.
	Email string `json:"email,omitempty"`
	// +kubebuilder:validation:MaxLength=256

	DisplayName string `json:"displayName,omitempty"`
	// +listType=set
	// +kubebuilder:validation:MaxItems=500

	// Groups are names of Groups. A name without a Group has no effect.
	Groups []string `json:"groups,omitempty"`
	// +listType=atomic
	// +kubebuilder:validation:MaxItems=20

	// Identities are how issuers and directories know the person. At most one person has each.
	Identities []Identity `json:"identities,omitempty"`
	// +listType=atomic
	// +kubebuilder:validation:MaxItems=100

	// SSHKeys are public keys.
	SSHKeys []SSHKey `json:"sshKeys,omitempty"`
	// +kubebuilder:validation:MaxLength=63

	// DefaultVirtualCluster is the virtual cluster of jobs whose files don't name one. If it is empty, the virtual cluster is "default".
	DefaultVirtualCluster string `json:"defaultVirtualCluster,omitempty"`
	// Notifications are the person's choices of notices; without any, they are DefaultNotifications.
	Notifications *Notifications `json:"notifications,omitempty"`
	// Disabled people can't sign in, and their tokens are rejected.
	Disabled bool `json:"disabled,omitempty"`
	// Removed people can't be restored. Their names stay reserved, because jobs in the history have them.
	Removed bool `json:"removed,omitempty"`
}

// Identity is a person as a provider of sign-ins knows them.
type Identity struct {
	// +kubebuilder:validation:MinLength=1
	Provider string `json:"provider"`
	// +kubebuilder:validation:MinLength=1
	Subject string `json:"subject"`
}

// SSHKey is a public key, as one line of authorized_keys.
type SSHKey struct {
	Title string `json:"title,omitempty"`
	Value string `json:"value"`
}

// UserStatus is written by the server alone.
type UserStatus struct {
	// +listType=map
	// +listMapKey=provider
	// +listMapKey=subject

	// External holds the answers of providers about the person. An answer is valid while the person has its identity.
	External   []External   `json:"external,omitempty"`
	LastSignIn *metav1.Time `json:"lastSignIn,omitempty"`
	// +listType=map
	// +listMapKey=type

	// Conditions has Valid=False if the object is ignored, with the reason.
	Conditions []metav1.Condition `json:"conditions,omitempty"`
}

// ConditionValid is the condition that reports whether a User is valid.
const ConditionValid = "Valid"

// External is the answer of one provider about a person.
type External struct {
	Provider string `json:"provider"`
	Subject  string `json:"subject"`
	// +listType=set
	// +kubebuilder:validation:MaxItems=1000

	// Groups are the person's groups at the provider.
	Groups []string `json:"groups,omitempty"`
	// CheckedAt is the time of the answer.
	CheckedAt metav1.Time `json:"checkedAt"`
	// Gone reports that the provider doesn't know the person or has disabled the person, or that it hasn't answered for too long about a person
	// without a password.
	Gone bool `json:"gone,omitempty"`
}

// +kubebuilder:object:root=true
// +kubebuilder:resource:path=groups,singular=group,scope=Cluster
// +kubebuilder:printcolumn:name="Group",type=string,JSONPath=`.spec.name`
// +kubebuilder:printcolumn:name="Administrator",type=boolean,JSONPath=`.spec.administrator`
// +kubebuilder:printcolumn:name="Virtual clusters",type=string,JSONPath=`.spec.virtualClusters[*].name`
// +kubebuilder:printcolumn:name="Age",type=date,JSONPath=`.metadata.creationTimestamp`

// Group grants permissions to its members.
type Group struct {
	metav1.TypeMeta   `json:",inline"`
	metav1.ObjectMeta `json:"metadata,omitempty"`

	Spec GroupSpec `json:"spec"`
}

// GroupSpec holds the grants of a group, and its members in addition to the people whose Groups name it.
type GroupSpec struct {
	// +kubebuilder:validation:Pattern=`^[A-Za-z0-9]([A-Za-z0-9_.-]{0,61}[A-Za-z0-9])?$`
	// +kubebuilder:validation:XValidation:rule="self == oldSelf",message="a group keeps its name"

	// Name is the group's name. It is a label value, because jobs have it as a label.
	Name string `json:"name"`
	// +kubebuilder:validation:MaxLength=1024

	Description string `json:"description,omitempty"`
	// +listType=atomic
	// +kubebuilder:validation:MaxItems=100

	// External are groups of providers. Members of one of them are members of this group.
	External []ExternalGroup `json:"external,omitempty"`
	// Administrator allows members everything except the use of storages.
	Administrator bool `json:"administrator,omitempty"`
	// +listType=map
	// +listMapKey=name
	// +kubebuilder:validation:MaxItems=500

	// VirtualClusters are the virtual clusters where members may submit jobs.
	VirtualClusters []VCGrant `json:"virtualClusters,omitempty"`
	// AllVirtualClusters allows members to submit to all virtual clusters, including virtual clusters that are added later.
	AllVirtualClusters bool `json:"allVirtualClusters,omitempty"`
	// +listType=set
	// +kubebuilder:validation:MaxItems=500

	// Storages that members may use. The first is the default storage of the group.
	Storages []string `json:"storages,omitempty"`
	// +listType=set
	// +kubebuilder:validation:items:Enum=monitoring;alerts;monitoring-write

	// Pages are web pages of the platform that members may see.
	Pages []string `json:"pages,omitempty"`
	// +kubebuilder:pruning:PreserveUnknownFields

	// Extension keeps the data that clients of OpenPAI's API stored with the group.
	Extension *runtime.RawExtension `json:"extension,omitempty"`
}

// ExternalGroup is a group as a provider of sign-ins knows it.
type ExternalGroup struct {
	// +kubebuilder:validation:MinLength=1
	Provider string `json:"provider"`
	// +kubebuilder:validation:MinLength=1
	Name string `json:"name"`
}

// VCGrant holds the permissions of members in one virtual cluster.
type VCGrant struct {
	// +kubebuilder:validation:MinLength=1
	Name string `json:"name"`
	// SeeJobs lets members see each other's jobs there.
	SeeJobs bool `json:"seeJobs,omitempty"`
	// +kubebuilder:validation:Enum=oppo;test;prod;crit

	// MaxPriority is the highest priority that members may request; empty means prod.
	MaxPriority string `json:"maxPriority,omitempty"`
	// HostNetwork lets members use the machines' network.
	HostNetwork bool `json:"hostNetwork,omitempty"`
}
