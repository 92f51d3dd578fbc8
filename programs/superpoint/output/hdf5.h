/* What the readers and writers of HDF5 share. */
#ifndef SUPERPOINT_OUTPUT_HDF5_H
#define SUPERPOINT_OUTPUT_HDF5_H

#include <hdf5.h>

#include "superpoint.h"

/* Keep libhdf5 from printing on standard error. */
void hdf5_quiet(void);

/* Fill in err with libhdf5's own reason. */
sp_status hdf5_fail(const char *path, const char *what, sp_error *err);

/* IEEE binary16, as h5py and PyTables write it. */
hid_t hdf5_half_type(void);

/* Files, groups and datasets without times and with the names in UTF-8. */
hid_t hdf5_create_file(const char *path);
/* A group and those above it that are missing. */
hid_t hdf5_create_group(hid_t file, const char *name);
hid_t hdf5_data_list(void);

/* Make and fill a dataset; it is left open. Below 0 on failure. */
hid_t hdf5_put(hid_t group, const char *name, hid_t type, int rank, const hsize_t *shape, const void *data,
               hid_t data_list);

/* A text attribute. Reading gives a copy to be freed, or NULL when there is none. */
sp_status hdf5_put_text(hid_t object, const char *name, const char *text);
char *hdf5_get_text(hid_t object, const char *name);

#endif
