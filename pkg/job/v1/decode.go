package v1

import (
	"encoding/json"
	"fmt"
	"strings"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	kjson "sigs.k8s.io/json"
)

// MaxTasks is the maximum number of tasks of a Framework, in all its roles together.
const MaxTasks = 10_000

// UnmarshalJSON decodes as much of a Framework as possible. The API server stores objects of users that may not fit these types, and one invalid
// object must not make the list of all jobs unreadable. If a part can't be decoded, Unreadable contains the reason.
func (f *Framework) UnmarshalJSON(data []byte) error {
	var p struct { // the parts that are read one by one
		metav1.TypeMeta   `json:",inline"`
		metav1.ObjectMeta `json:"metadata"`

		Spec   json.RawMessage `json:"spec"`
		Status json.RawMessage `json:"status"`
	}
	if err := kjson.UnmarshalCaseSensitivePreserveInts(data, &p); err != nil {
		return err
	}
	*f = Framework{TypeMeta: p.TypeMeta, ObjectMeta: p.ObjectMeta}
	if len(p.Spec) > 0 {
		if err := kjson.UnmarshalCaseSensitivePreserveInts(p.Spec, &f.Spec); err != nil {
			f.Spec, f.Unreadable = FrameworkSpec{}, fmt.Sprintf("spec: %v", err)
		}
	}
	if len(p.Status) > 0 {
		if err := kjson.UnmarshalCaseSensitivePreserveInts(p.Status, &f.Status); err != nil {
			f.Status, f.Unreadable = nil, fmt.Sprintf("status: %v", err)
		}
	}
	return nil
}

// UnreadableStatus returns why the status couldn't be decoded, or "" if it could. Users don't write the status, so a newer controller may have
// written it. In this case an older controller must not change the Framework.
func (f *Framework) UnreadableStatus() string {
	if !strings.HasPrefix(f.Unreadable, "status: ") {
		return ""
	}
	return f.Unreadable
}

// Invalid returns why a Framework can't run in its present form, or "" if it can.
func (f *Framework) Invalid() string {
	if f.Unreadable != "" && f.UnreadableStatus() == "" {
		return "The job's object can't be read: " + f.Unreadable + "."
	}
	total := int64(0)
	for _, r := range f.Spec.TaskRoles {
		total += int64(max(0, r.TaskNumber))
	}
	if total > MaxTasks {
		return fmt.Sprintf("The job has %d tasks; the maximum is %d.", total, MaxTasks)
	}
	return ""
}
