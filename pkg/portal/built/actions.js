import {
  Canceling,
  MachineActions,
  Outcome,
  Phase,
  Requesting,
  interval,
  isCancelable,
  isFinal,
  operationName,
  requester
} from "./shared-2.js";
import "./shared-3.js";
import "./shared-6.js";
import "./shared.js";
export {
  Canceling,
  MachineActions,
  Outcome,
  Phase,
  Requesting,
  interval,
  isCancelable,
  isFinal,
  operationName,
  requester
};
