"""Code that all training stages share: training loop, configuration, log, saved states, signals.

The modules share these words:

- A stage is a kind of training, such as pretraining. It has a configuration class and a `Task` for the loop.
- An update is one optimizer step, numbered from 0. Its loss is a sum of terms, which are divided among the
  processes.
- A run is the training by one configuration, in the folder that its key `out` names. Only its first process,
  of rank 0, writes the log, the saved states and the model.
- A saved state is a checkpoint, from which the same command resumes the run.
- The criterion is the number that chooses the best model of a run; lower is better.
- The scaler multiplies the loss, so that small float16 gradients do not become 0. With other precisions than
  "fp16", it does nothing.
- A model is sharded if each process stores only a part of its weights, gradients and optimizer moments.
- Configuration values are nested dictionaries, lists and tuples. An override, `key=value`, sets one of them.
"""
