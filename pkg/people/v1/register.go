package v1

import (
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/runtime/schema"
)

// GroupVersion is the group and version of User, Group and Template.
var GroupVersion = schema.GroupVersion{Group: "paictl.openpai.org", Version: "v1"}

// The kinds.
const (
	KindUser  = "User"
	KindGroup = "Group"
)

// Resources, which are cluster-scoped.
var (
	Users  = GroupVersion.WithResource("users")
	Groups = GroupVersion.WithResource("groups")
)

// AddToScheme adds the types to a scheme, for clients.
func AddToScheme(s *runtime.Scheme) error {
	s.AddKnownTypes(GroupVersion, &User{}, &UserList{}, &Group{}, &GroupList{}, &Template{}, &TemplateList{})
	metav1.AddToGroupVersion(s, GroupVersion)
	return nil
}
