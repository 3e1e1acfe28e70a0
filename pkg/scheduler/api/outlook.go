package api

import (
	corev1 "k8s.io/api/core/v1"

	"github.com/openpai/paictl/pkg/scheduler/cell"
)

// OutlookQuery requests a prediction: would the pods of a job start if they were created now?
type OutlookQuery struct {
	Pods []NewPods `json:"pods"`
}

// NewPods are equal pods that don't exist yet. The scheduler reads only these parts of Pod: the annotation with the request,
// the labels for user and group, the constraints on nodes, and the time limit.
type NewPods struct {
	Count int        `json:"count"`
	Pod   corev1.Pod `json:"pod"`
}

// Predictions for a gang.
const (
	// Starts: the gang would start now. Preempts: the gang would start after it has preempted other gangs. Waits: the gang
	// would wait in the queue. Never: the gang couldn't start even in an idle cluster.
	Starts   = "starts"
	Preempts = "preempts"
	Waits    = "waits"
	Never    = "never"
)

// Outlook is the result of an OutlookQuery.
type Outlook struct {
	Gangs []NewGang `json:"gangs"`
}

// NewGang is the prediction for a gang, or for several equal gangs of one pod each.
type NewGang struct {
	VC string `json:"vc"`
	// Count is the number of gangs. Starting is the number of gangs that would start now. Tried is the number of tested gangs
	// if the scheduler didn't test all gangs.
	Count    int `json:"count"`
	Starting int `json:"starting"`
	Tried    int `json:"tried,omitempty"`
	// Pods is the number of pods of each gang.
	Pods int `json:"pods"`
	// Result is Starts, or the prediction for the first gang that doesn't start.
	Result string `json:"result" enum:"starts,preempts,waits,never"`
	// Reason explains why the gang doesn't start, in the same words as Why. Code is the code of the explanation. Code is "" if
	// free cells are held for another gang.
	Reason string `json:"reason,omitempty"`
	Code   string `json:"code,omitempty"`
	// BadNodes lists unusable nodes with reasons, if the gang doesn't start because of these nodes.
	BadNodes string `json:"badNodes,omitempty"`
	// Nodes are the nodes on which the gangs would start.
	Nodes []string `json:"nodes,omitempty"`
	// PositionInVC is the gang's position among the QueueInVC waiting gangs of its virtual cluster. It counts from 1. It is 0
	// if the gang wouldn't wait.
	PositionInVC int `json:"positionInVC,omitempty"`
	QueueInVC    int `json:"queueInVC,omitempty"`
	// Victims is the number of gangs that would have to stop first.
	Victims int `json:"victims,omitempty"`
	// Largest is the largest gang of the same shape, or the largest single pod, that would start now. It is nil if no such gang
	// would start, if the result is unknown, and for pods of several sizes.
	Largest *cell.Smaller `json:"largest,omitempty"`
}
