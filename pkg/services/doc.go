// Package services starts, stops, removes and describes the platform's services. In: the configuration in the cluster, the catalogue of services, and
// interfaces for Helm releases and readiness. Out: releases in the cluster, and the events of a run.
package services
