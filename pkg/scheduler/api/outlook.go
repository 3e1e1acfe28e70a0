package api

import (
	corev1 "k8s.io/api/core/v1"

	"github.com/openpai/paictl/pkg/scheduler/cell"
)

// OutlookQuery asks whether the pods of a job would start if they were created now.
type OutlookQuery struct {
	Pods []NewPods `json:"pods"`
}

// NewPods are equal pods that don't exist. Of the pod, the scheduler reads the annotation with the request, the labels with the user and
// the group, the constraints on nodes, and how long it runs at most.
type NewPods struct {
	Count int        `json:"count"`
	Pod   corev1.Pod `json:"pod"`
}

// The predictions for a gang.
const (
	// Starts: it would start now. Preempts: it would start when others, which it may preempt, have stopped. Waits: it would wait in the queue.
	// Never: it could not start even if the cluster were idle.
	Starts   = "starts"
	Preempts = "preempts"
	Waits    = "waits"
	Never    = "never"
)

// Outlook is the result of an OutlookQuery.
type Outlook struct {
	Gangs []NewGang `json:"gangs"`
}

// NewGang is the prediction for a gang, or for several equivalent gangs of one pod each.
type NewGang struct {
	VC string `json:"vc"`
	// Count is the number of gangs; Starting of them would start now. Tried is how many were tried, if not all were.
	Count    int `json:"count"`
	Starting int `json:"starting"`
	Tried    int `json:"tried,omitempty"`
	// Pods is the number of pods of each gang.
	Pods int `json:"pods"`
	// Result is Starts, or the prediction for the first gang that doesn't start.
	Result string `json:"result" enum:"starts,preempts,waits,never"`
	// Reason explains why it doesn't start, in the words of Why. Code is the code of the explanation, or "" if free cells are held for
	// another gang.
	Reason string `json:"reason,omitempty"`
	Code   string `json:"code,omitempty"`
	// BadNodes names nodes that can't be used, with the reasons, if that is why it doesn't start.
	BadNodes string `json:"badNodes,omitempty"`
	// Nodes are the nodes on which the gangs would start.
	Nodes []string `json:"nodes,omitempty"`
	// PositionInVC is its place among the QueueInVC gangs that would wait in its virtual cluster, counted from 1; 0 if it wouldn't wait.
	PositionInVC int `json:"positionInVC,omitempty"`
	QueueInVC    int `json:"queueInVC,omitempty"`
	// Victims is the number of gangs that would have to stop first.
	Victims int `json:"victims,omitempty"`
	// Largest is the largest gang of the same shape that would start now, or the largest single pod; nil if none would, if it isn't known, and
	// for pods of several sizes.
	Largest *cell.Smaller `json:"largest,omitempty"`
}
