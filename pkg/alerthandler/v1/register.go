package v1

import (
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/runtime/schema"
)

// GroupVersion is the group and version of Action.
var GroupVersion = schema.GroupVersion{Group: "paictl.openpai.org", Version: "v1"}

// Kind is the kind of an Action.
const Kind = "Action"

// Actions is the resource of Action, which is cluster-scoped.
var Actions = GroupVersion.WithResource("actions")

// AddToScheme adds the types to a scheme, for clients.
func AddToScheme(s *runtime.Scheme) error {
	s.AddKnownTypes(GroupVersion, &Action{}, &ActionList{})
	metav1.AddToGroupVersion(s, GroupVersion)
	return nil
}
