package v1

import (
	"slices"
	"strings"
	"time"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
)

// KindTemplate is the kind of a job file that people share.
const KindTemplate = "Template"

// Templates is the resource of Template, which is cluster-scoped.
var Templates = GroupVersion.WithResource("templates")

// AnnotationUpdated is an annotation of a Template with the time of the last change of its Spec, in RFC 3339.
const AnnotationUpdated = "paictl.openpai.org/updated"

// CategoryOfficial is a category that only administrators may assign. Only administrators may change its templates.
const CategoryOfficial = "official example"

// AuthorBuiltIn is the author of the templates that are part of the program. No person can have this name.
const AuthorBuiltIn = "@catalogue"

// +kubebuilder:object:root=true
// +kubebuilder:resource:path=templates,singular=template,scope=Cluster
// +kubebuilder:subresource:status
// +kubebuilder:printcolumn:name="Template",type=string,JSONPath=`.spec.name`
// +kubebuilder:printcolumn:name="Author",type=string,JSONPath=`.spec.author`
// +kubebuilder:printcolumn:name="Public",type=boolean,JSONPath=`.spec.public`
// +kubebuilder:printcolumn:name="Uses",type=integer,JSONPath=`.status.uses`
// +kubebuilder:printcolumn:name="Age",type=date,JSONPath=`.metadata.creationTimestamp`

// Template is a job file with a description. Its UID is its id in OpenPAI's API.
type Template struct {
	metav1.TypeMeta   `json:",inline"`
	metav1.ObjectMeta `json:"metadata,omitempty"`

	Spec   TemplateSpec   `json:"spec"`
	Status TemplateStatus `json:"status,omitempty"`
}

// TemplateSpec holds the author's fields.
type TemplateSpec struct {
	// +kubebuilder:validation:MinLength=1
	// +kubebuilder:validation:MaxLength=100

	// Name is for people. It is unique among the templates of an author.
	Name string `json:"name"`
	// +kubebuilder:validation:Pattern=`^([A-Za-z0-9]([A-Za-z0-9_.-]{0,61}[A-Za-z0-9])?|@catalogue)$`
	// +kubebuilder:validation:XValidation:rule="self == oldSelf",message="a template keeps its author"

	// Author is the name of a person, or AuthorBuiltIn.
	Author string `json:"author"`
	// +kubebuilder:validation:Enum=template;data;old

	// Type is OpenPAI's name of the kind: template for a job, data, or old for a file of its old marketplace.
	Type string `json:"type"`
	// Public shows the template to everyone. Otherwise the author, administrators, and members of Groups see it.
	Public bool `json:"public,omitempty"`
	// +listType=set
	// +kubebuilder:validation:MaxItems=50

	Groups []string `json:"groups,omitempty"`
	// +kubebuilder:validation:MaxLength=1024

	Summary string `json:"summary,omitempty"`
	// +kubebuilder:validation:MaxLength=65536

	// Description is Markdown, which paictl doesn't parse.
	Description string `json:"description,omitempty"`
	// +listType=set
	// +kubebuilder:validation:MaxItems=20

	Categories []string `json:"categories,omitempty"`
	// +listType=set
	// +kubebuilder:validation:MaxItems=20

	Tags []string `json:"tags,omitempty"`
	// +kubebuilder:validation:MaxLength=256

	// DataType and DataURL describe the data on OpenPAI's pages.
	DataType string `json:"dataType,omitempty"`
	// +kubebuilder:validation:MaxLength=2048

	DataURL string `json:"dataUrl,omitempty"`
	// +kubebuilder:validation:MaxLength=204800

	// Job is a job file without secrets: each is replaced by a mask.
	Job string `json:"job"`
}

// TemplateStatus counts how other people use the template.
type TemplateStatus struct {
	// +kubebuilder:validation:Minimum=0

	// Uses is the number of jobs that were submitted from the template.
	Uses int64 `json:"uses,omitempty"`
	// +listType=set
	// +kubebuilder:validation:MaxItems=10000

	// Stars are names of people who like it.
	Stars []string `json:"stars,omitempty"`
}

// Updated returns the time of the last change of the author's fields.
func (t *Template) Updated() time.Time {
	at, err := time.Parse(time.RFC3339, t.Annotations[AnnotationUpdated])
	if err != nil {
		return t.CreationTimestamp.Time
	}
	return at
}

// BuiltIn reports whether the template is part of the program. Such a template can't be changed.
func (t *Template) BuiltIn() bool { return t.Spec.Author == AuthorBuiltIn }

// Has reports whether the name, the author or the summary contains a text. It ignores case.
func (t *Template) Has(text string) bool {
	text = strings.ToLower(text)
	return slices.ContainsFunc([]string{t.Spec.Name, t.Spec.Author, t.Spec.Summary}, func(field string) bool { return strings.Contains(strings.ToLower(field), text) })
}
