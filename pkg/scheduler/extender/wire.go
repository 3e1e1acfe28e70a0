package extender

import (
	"bytes"
	"encoding/json"
	"errors"
	"strconv"

	"k8s.io/apimachinery/pkg/types"
)

// The types of kube-scheduler's extender protocol, as far as it is spoken here. They have no JSON
// tags there, so that names are Go's; decoding doesn't care about upper and lower case.

// podRef is what the protocol needs of a pod; the rest is known from the API server.
type podRef struct {
	Metadata struct {
		UID       types.UID `json:"uid"`
		Name      string    `json:"name"`
		Namespace string    `json:"namespace"`
	} `json:"metadata"`
}

func (p *podRef) key() string { return p.Metadata.Namespace + "/" + p.Metadata.Name }

type filterArgs struct {
	Pod       *podRef
	NodeNames *nodeNames
}

type filterResult struct {
	NodeNames   *[]string         `json:",omitempty"`
	FailedNodes map[string]string `json:",omitempty"`
	// FailedAndUnresolvableNodes repeats FailedNodes: kube-scheduler needn't look for victims there.
	FailedAndUnresolvableNodes map[string]string `json:",omitempty"`
	Error                      string            `json:",omitempty"`
}

type bindArgs struct {
	PodName      string
	PodNamespace string
	PodUID       types.UID
	Node         string
}

type bindResult struct {
	Error string `json:",omitempty"`
}

type preemptArgs struct {
	Pod                   *podRef
	NodeNameToMetaVictims map[string]json.RawMessage
}

type preemptResult struct {
	NodeNameToMetaVictims map[string]metaVictims `json:",omitempty"`
}

type metaVictims struct {
	Pods             []metaPod
	NumPDBViolations int64
}

type metaPod struct{ UID string }

// nodeNames is a list of node names in JSON. It is not decoded unless someone asks for more than
// one name: there are as many as the cluster has nodes, in every call.
type nodeNames struct {
	raw []byte
	set map[string]struct{}
}

// UnmarshalJSON keeps the text.
func (n *nodeNames) UnmarshalJSON(data []byte) error {
	if len(data) == 0 || data[0] != '[' {
		return errors.New("NodeNames is no list")
	}
	n.raw = bytes.Clone(data)
	return nil
}

// mentions reports whether a node is in the list, without decoding it.
func (n *nodeNames) mentions(name string) bool {
	return bytes.Contains(n.raw, strconv.AppendQuote(nil, name))
}

// decode makes Has work.
func (n *nodeNames) decode() error {
	var names []string
	if err := json.Unmarshal(n.raw, &names); err != nil {
		return err
	}
	n.set = make(map[string]struct{}, len(names))
	for _, name := range names {
		n.set[name] = struct{}{}
	}
	return nil
}

// Has implements cell.Nodes.
func (n *nodeNames) Has(name string) bool {
	_, ok := n.set[name]
	return ok
}

// nodeSet implements cell.Nodes for the keys of the preempt verb.
type nodeSet map[string]json.RawMessage

// Has implements cell.Nodes.
func (s nodeSet) Has(name string) bool {
	_, ok := s[name]
	return ok
}
